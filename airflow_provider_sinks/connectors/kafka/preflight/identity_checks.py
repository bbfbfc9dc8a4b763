"""The topics of a sink compared with those that it announced when it last ran."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import SinkTopic, TopicSurvey
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.identity import Identity, Sameness
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.wording import count


def identity_checks(
    conn_id: str,
    topics: Sequence[SinkTopic],
    seen: Mapping[str, TopicSurvey],
    cluster_id: str,
    witness: Witness,
) -> Iterator[Check]:
    """Compare clusters and topics with those that the sink announced when it last ran."""
    checks = Checks(conn_id, Family.TOPICS)
    known = witness.identities
    recorded = {Role.SOURCE: known.source, Role.DATA: known.data, Role.PROGRESS: known.progress}
    if known.dead_letter is not None:
        recorded[Role.DEAD_LETTER] = known.dead_letter
    for topic in topics:
        for role in _announced(topic.roles, recorded):
            then, survey = recorded[role], seen[topic.name]
            now = Identity(cluster_id, topic.name, survey.topic_id, survey.partitions)
            if not survey.topic_id:  # what cannot be seen is told by a check of its own
                now = replace(then, system=cluster_id, name=topic.name)
            yield _compared(checks, role, now, then, witness)


def _compared(checks: Checks, role: Role, now: Identity, then: Identity, witness: Witness) -> Check:
    name = f'identity of {role} "{now.name}"'
    match now.compared_with(then):
        case Sameness.ELSEWHERE:
            detail = f"this connection leads to cluster {now.system}; the sink ran on {then.system}"
            return _other(checks, name, detail, role, witness)
        case Sameness.RENAMED:
            return checks.skips(name, f'the sink had another one before: "{then.name}"')
        case Sameness.REPLACED:
            detail = f"another topic of this name: id {now.id}, the sink knew {then.id}"
            return _other(checks, name, detail, role, witness)
        case Sameness.SHRANK:
            detail = f"it has {count(now.partitions, 'partition')}, the sink knew {then.partitions}"
            return _other(checks, name, detail, role, witness)
        case Sameness.SAME | Sameness.GREW:
            return checks.passes(name, f"cluster {now.system}, as before")
        case other:
            assert_never(other)


def _announced(roles: Collection[Role], recorded: Mapping[Role, object]) -> list[Role]:
    return [role for role in roles if role in recorded]


def _other(checks: Checks, name: str, detail: str, role: Role, witness: Witness) -> Check:
    if role is Role.DATA and not witness.rows_ever:
        return checks.unknown(name, f"{detail}; nothing was written there, so it would be taken")
    if role is Role.DEAD_LETTER:
        return checks.unknown(name, f"{detail}; a start refuses it if dead letters were written")
    hint = "Name the cluster it ran on, or start the sink there and choose one of the ways on that it offers."
    return checks.fails(name, detail, hint)
