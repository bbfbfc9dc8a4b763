"""Reset and rewind of a sink that really ran: which rows come again, and what a start makes of it."""

from __future__ import annotations

from collections import Counter

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.lifecycle.new_generation import Output
from airflow_provider_sinks.core.lifecycle.rewind import LATEST, AtOffsets, plan_rewind
from tests.live.generations import carry_out, everything, feed, ran, reset, written
from tests.live.stage import Sink, Stage

__all__ = ["ran"]


def test_after_a_rewind_exactly_the_named_offsets_come_again(stage: Stage, ran: Sink) -> None:
    done = carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({1: 12})))
    status = ran.run()

    again = {f"2/{number}" for number in (5, 7, 9)}
    assert done[-1] == "announce generation 2 at source offsets 0: 15, 1: 12"
    assert written(stage, ran) == Counter(everything()) + Counter(again)
    assert (status.generation, status.epoch, status.rows_total) == (2, 1, 3)
    assert status.rows_before == 30


def test_airflow_remembers_the_rows_before_a_rewind_though_nothing_came_after_it(
    stage: Stage, ran: Sink
) -> None:
    """Another prefix gives it ids that the broker does not remember: Airflow is the only witness left."""
    feed(stage, ran.source, ["skipped/0", "skipped/1"])
    carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets(dict.fromkeys(range(2), LATEST), skip=True)))
    ran.run()
    stage.delete_topic(ran.progress)
    ran.spec = {**ran.spec, "transactional_id_prefix": "forgotten"}

    refused = ran.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert refused.error.primary == f'progress of sink "{ran.parsed.name}" is lost'
    assert "30 rows through epoch 1 of generation 2" in refused.error.detail
    assert written(stage, ran) == Counter(everything())


def test_after_a_reset_everything_comes_again_into_an_empty_topic(stage: Stage, ran: Sink) -> None:
    reset(ran, data=Output.EMPTY)
    status = ran.run()

    assert written(stage, ran) == Counter(everything())
    assert (status.generation, status.rows_total) == (2, 30)
