"""What differs between a query and its target, as a verdict and a report tell it."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.checks.columns import column_check
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.verdict import render
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    Incompatible,
    NeedsMigration,
    SchemaDiff,
    columns_of,
    demanded,
)
from tests.facts import DATA, missing, observation, request

_MIGRATION = NeedsMigration(
    "public.orders", (AddColumn("region", "text"),), ("ALTER TABLE public.orders ADD COLUMN region text",)
)
_INCOMPATIBLE = Incompatible(
    'table "orders" does not fit the query', (Problem("column 'id'", "is text"),), "CAST"
)


def test_a_verdict_that_goes_on_prints_what_it_alters_and_one_that_does_not_alters_nothing() -> None:
    seen = observation(migration=_MIGRATION)
    verdict = decide(seen, request())

    assert verdict.migration == _MIGRATION
    assert (
        "  action: alter data table \"public.orders\": add column 'region' as text, null in the rows before: "
        "ALTER TABLE public.orders ADD COLUMN region text"
    ) in render(seen, verdict).splitlines()
    assert decide(observation(migration=_MIGRATION, data=missing(DATA)), request()).migration is None


@pytest.mark.parametrize(
    ("diff", "outcome", "begins"),
    [
        (Compatible(), Outcome.PASS, "compatible: "),
        (_MIGRATION, Outcome.PASS, "needs migration, which a start does: ALTER TABLE public.orders ADD"),
        (_INCOMPATIBLE, Outcome.FAIL, "incompatible, table \"orders\" does not fit the query: column 'id'"),
    ],
)
def test_a_validation_tells_the_three_answers_apart(diff: SchemaDiff, outcome: Outcome, begins: str) -> None:
    check = column_check("orders", diff)

    assert check.outcome is outcome
    assert check.detail.startswith(begins)


def test_only_what_does_not_fit_ends_a_start() -> None:
    assert demanded(Compatible()) is None
    assert demanded(_MIGRATION) == _MIGRATION
    with pytest.raises(ConfigurationError, match="does not fit") as refused:
        demanded(_INCOMPATIBLE)
    assert refused.value.hint == "CAST"


def test_the_columns_of_a_query_are_its_own_and_none_of_ours() -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "__sinks_offset", "type": "long"}]
    assert columns_of({"type": "struct", "fields": fields}) == {"id": "long"}
