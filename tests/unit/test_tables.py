"""The decision over a target whose outputs are tables: it speaks of tables, of no topic but the source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.decision.reasons.progress_place import PlaceReason
from airflow_provider_sinks.core.decision.reasons.source import SourceReason
from airflow_provider_sinks.core.decision.reasons.spec import SpecReason
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import Announce, DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.identity import Identities, Identity, ResourceKind
from airflow_provider_sinks.streaming.source_identity import demand_same
from tests.facts import SOURCE, every_reason, history, missing, observation, present, request, witness
from tests.refusal_rows import REFUSALS

DATA = Identity("7301/shop", "public.orders", "16401")
PROGRESS = Identity("7301/shop", "public._sinks_progress", "16388")
READ_ONLY = Unfit("cannot be written to", "The server is a standby: it is read-only.", "Name the primary.")


def table(facts: ResourceFacts) -> ResourceFacts:
    return replace(facts, kind=ResourceKind.TABLE)


def with_tables(seen: Observation) -> Observation:
    dead_letter = table(seen.dead_letter) if seen.dead_letter else None
    return replace(seen, data=table(seen.data), progress=table(seen.progress), dead_letter=dead_letter)


def judged(**changes: Any) -> Verdict:
    known = Identities(SOURCE, DATA, PROGRESS)
    tables = {
        "data": present(DATA, high={0: 500}),
        "progress": present(PROGRESS),
        "history": history(identities=known),
    }
    return decide(
        with_tables(observation(**{**tables, **changes})), request(witness=witness(identities=known))
    )


def test_a_sink_whose_tables_are_as_announced_resumes() -> None:
    assert judged().kind is VerdictKind.RESUME


def test_a_missing_table_is_refused_as_a_table() -> None:
    verdict = judged(data=missing(DATA))

    assert verdict.primary == 'data table "public.orders" is missing, but sink "orders" has written to it'
    assert verdict.detail == (
        'Progress table "public._sinks_progress" records 500 rows through epoch 7 of generation 1 '
        '(2026-11-20T22:14:00Z). Recorded was "public.orders" with id 16401 in database 7301/shop.'
    )
    assert [offer.name for offer in verdict.offers] == ["continue_without_output", "start_over"]


def test_a_table_that_was_made_anew_is_another_one() -> None:
    verdict = judged(data=present(replace(DATA, id="16999")))

    assert 'Found is "public.orders" with id 16999 in database 7301/shop.' in verdict.detail
    assert 'take data table "public.orders" as it is' in verdict.offers[0].explanation


def test_a_table_that_cannot_take_the_rows_is_refused_with_its_repair() -> None:
    verdict = judged(data=present(DATA, unfit=READ_ONLY))

    assert verdict.kind is VerdictKind.REFUSE
    assert verdict.primary == 'data table "public.orders" cannot be written to'
    assert (verdict.detail, verdict.hint) == (READ_ONLY.why, READ_ONLY.repair)


def test_no_way_on_leads_into_a_table_that_cannot_take_the_rows() -> None:
    verdict = judged(data=present(replace(DATA, id="16999"), unfit=READ_ONLY))

    assert len(verdict.refusals) == 2
    assert verdict.offers == ()
    assert READ_ONLY.repair in verdict.hint


def test_a_progress_table_of_another_shape_is_refused_before_all_else() -> None:
    verdict = judged(progress=present(PROGRESS, unfit=READ_ONLY), data=missing(DATA))

    assert verdict.primary == 'progress table "public._sinks_progress" cannot be written to'


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (missing(DATA), ('data table "public.orders" was deleted while the sink ran', "It had id 16401.")),
        (
            present(replace(DATA, id="16999")),
            ('data table "public.orders" was replaced while the sink ran', "It was 16401 and is 16999."),
        ),
    ],
)
def test_a_running_sink_tells_of_its_table(now: ResourceFacts, said: tuple[str, str]) -> None:
    with pytest.raises(RefusedError) as error:
        demand_same(Role.DATA, DATA, table(now))

    assert (error.value.primary, error.value.detail) == said


def test_a_reset_speaks_of_tables() -> None:
    found = table(present(DATA, high={0: 500}))
    steps = [
        EmptyOutput(found.title(Role.DATA), found),
        DeleteOutput(found.title(Role.DATA), found),
        Announce(2, {}, unfinished=(Role.DATA,), kind=found.kind),
    ]

    assert [str(step) for step in steps] == [
        'empty data table "public.orders": delete its rows',
        'delete data table "public.orders" with up to 500 rows',
        "announce generation 2 as unfinished: no start goes on before the data table",
    ]


ABOUT_THE_TARGET = {
    name: row
    for name, row in REFUSALS.items()
    if not isinstance(row[2], SourceReason | SpecReason)
    and row[2] is not PlaceReason.PROGRESS_UNFIT
    and not row[0].memory
}


@pytest.mark.parametrize("row", ABOUT_THE_TARGET.values(), ids=ABOUT_THE_TARGET)
def test_no_refusal_speaks_of_kafka_to_a_target_of_tables(row: Any) -> None:
    text = str(decide(with_tables(row[0]), row[1])).lower().replace("cluster-", "")

    assert [word for word in ("topic", "kafka", "cluster", "offset 17") if word in text] == []


def test_every_reason_is_told_of_tables_too() -> None:
    briefs = [reason.brief(ResourceKind.TABLE) for reason in every_reason()]

    assert [brief for brief in briefs if "topic" in brief.replace("source topic", "")] == []
