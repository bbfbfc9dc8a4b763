"""The topics of a sink compared with those that it announced when it last ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import SinkTopic, TopicSurvey
from airflow_provider_sinks.core.checks.check import Check
from airflow_provider_sinks.core.checks.identities import IdentityChecks
from airflow_provider_sinks.core.decision.facts import ResourceFacts


def identity_checks(
    compared: IdentityChecks, topics: Sequence[SinkTopic], seen: Mapping[str, TopicSurvey], cluster_id: str
) -> Iterator[Check]:
    """Compare cluster and topics with those that the sink announced when it last ran."""
    for topic in topics:
        facts = _facts(seen[topic.name], cluster_id)
        yield from compared.of(dict.fromkeys(topic.roles, facts))


def _facts(survey: TopicSurvey, cluster_id: str) -> ResourceFacts:
    return ResourceFacts(
        survey.name,
        survey.existence,
        cluster_id,
        survey.topic_id,
        survey.partitions,
        reason=survey.reason,
    )
