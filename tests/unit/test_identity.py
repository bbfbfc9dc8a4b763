"""There is one comparison of two resources; the tables of the decision and preflight both ask it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.kafka.preflight.identity_checks import identity_checks
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import (
    SinkTopic,
    TopicSurvey,
)
from airflow_provider_sinks.core.checks.check import Checks, Family, Outcome
from airflow_provider_sinks.core.checks.identities import IdentityChecks
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.progress.identity import Identities, Identity, Sameness
from tests.facts import DATA, DEAD_LETTER, IDENTITIES, witness

TABLE = Identity("system/db", "public.orders", "16402")


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (TABLE, Sameness.SAME),
        (replace(TABLE, partitions=2), Sameness.GREW),
        (replace(TABLE, id="16500"), Sameness.REPLACED),
        (replace(TABLE, name="public.o"), Sameness.RENAMED),
        (replace(TABLE, system="other", id="16500"), Sameness.ELSEWHERE),
    ],
)
def test_a_resource_is_compared_with_what_was_seen_before(now: Identity, found: Sameness) -> None:
    assert now.compared_with(TABLE) is found
    assert found.is_same == (found in (Sameness.SAME, Sameness.GREW))


def test_fewer_partitions_are_another_topic() -> None:
    assert replace(DATA, partitions=1).compared_with(replace(DATA, partitions=2)) is Sameness.SHRANK


def test_identities_come_back_as_they_were_stored() -> None:
    known = replace(IDENTITIES, dead_letter=DEAD_LETTER)

    assert Identities.from_mapping(known.to_mapping()) == known
    assert set(known.to_mapping()["data"]) == {"cluster_id", "topic", "topic_id", "partitions"}


@pytest.mark.parametrize(
    ("role", "changes", "outcome", "says"),
    [
        (Role.DATA, {}, Outcome.PASS, "as before"),
        (Role.DATA, {"partitions": 1}, Outcome.FAIL, "it has 1 partition, the sink knew 3"),
        (Role.DATA, {"topic_id": "x"}, Outcome.FAIL, "another topic of this name: id x"),
        (Role.DATA, {"topic_id": "", "partitions": 0}, Outcome.PASS, "as before"),
        (Role.DEAD_LETTER, {"topic_id": "x"}, Outcome.UNKNOWN, "if dead letters were written"),
    ],
)
def test_preflight_compares_as_the_start_does(
    role: Role, changes: dict[str, object], outcome: Outcome, says: str
) -> None:
    known = {Role.DATA: replace(DATA, partitions=3), Role.DEAD_LETTER: DEAD_LETTER}
    then, here = known[role], known[role].system
    seen = {"topic_id": then.id, "partitions": then.partitions, **changes}
    survey = TopicSurvey(then.name, Existence.PRESENT, **seen)  # type: ignore[arg-type]
    remembered = witness(
        identities=replace(IDENTITIES, data=known[Role.DATA], dead_letter=known[Role.DEAD_LETTER]), rows=7
    )

    compared = IdentityChecks(Checks("k", Family.TOPICS), remembered)
    (check,) = identity_checks(compared, [SinkTopic(then.name, (role,), None)], {then.name: survey}, here)

    assert check.outcome is outcome
    assert says in check.detail
