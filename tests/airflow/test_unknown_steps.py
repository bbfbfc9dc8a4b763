"""Who carries out steps: one that is not known to it is an error, and is never said to be done."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_provider_sinks.core.lifecycle.steps import Announce, EmptyOutput, Fence, Plan
from tests.facts import DATA, present


def _alteration() -> Callable[[Any], None]:
    from airflow_provider_sinks.operators.alter.alteration import Alteration

    nothing = cast("Any", None)
    return Alteration(nothing, nothing, nothing, cast("Any", logging.getLogger()))._do


def _airflow() -> Callable[[Any], None]:
    from airflow_provider_sinks.metadata.sink_homes import SinkHomes

    return SinkHomes(cast("Any", None)).do


@pytest.mark.parametrize("executor", [_alteration, _airflow])
def test_a_step_that_nobody_knows_is_an_error(executor: Callable[[], Callable[[Any], None]]) -> None:
    with pytest.raises(AssertionError, match="a new step"):
        executor()("a new step")


@pytest.mark.parametrize(
    "step", [Fence(("p0",)), Announce(2, {}), EmptyOutput("data topic", present(DATA))], ids=str
)
def test_a_verb_does_not_say_that_it_did_what_only_the_targets_clients_can(step: Any) -> None:
    from airflow_provider_sinks.lifecycle.verbs import SinkVerbs
    from airflow_provider_sinks.metadata.sink_homes import SinkHomes

    said: list[str] = []
    verbs = SinkVerbs(SinkHomes(cast("Any", None)), say=said.append)

    with pytest.raises(AssertionError, match="nobody here can do this"):
        verbs._in_airflow(Plan("orders", "it is done", (step,)))

    assert said == []


def test_an_alteration_that_ended_in_a_way_that_nobody_knows_is_no_success() -> None:
    from airflow_provider_sinks.operators.alter.alteration import Altered
    from airflow_provider_sinks.operators.alter.end import error_of

    order = cast("Any", SimpleNamespace(conn_id="kafka"))
    altered = Altered(cast("Any", "a new end"), (), ())

    with pytest.raises(AssertionError, match="a new end"):
        error_of(order, altered, cast("Any", None), "")
