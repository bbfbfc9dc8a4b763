"""Whether a topic can keep progress, or be emptied, and how to mend it: said by those who know Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.topic_facts import TopicFacts, as_emptiable, as_progress_topic
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import UnavailableError
from tests.facts import BOOTSTRAP, progress_as

MADE = TopicFacts("out", Existence.PRESENT, "cluster-a", "id", 6, replication_factor=3)


@pytest.mark.parametrize(
    ("policy", "partitions", "what"),
    [
        ("compact", 1, None),
        ("compact", 2, "has 2 partitions"),
        ("delete", 1, "is not exactly compacted"),
        ("compact,delete", 1, "is not exactly compacted"),
    ],
)
def test_a_progress_topic_has_one_partition_and_is_exactly_compacted(
    policy: str, partitions: int, what: str | None
) -> None:
    facts = progress_as(cleanup_policy=policy, partitions=partitions)

    assert (facts.unfit.what if facts.unfit else None) == what
    assert facts.unfit is None or f"--bootstrap-server {BOOTSTRAP}" in facts.unfit.repair


def test_a_policy_that_may_not_be_seen_is_neither_fit_nor_unfit() -> None:
    facts = progress_as(cleanup_policy=None)

    assert (facts.unfit, facts.hidden) == (None, "cleanup.policy")


def test_nothing_is_said_of_a_progress_topic_that_is_not_there() -> None:
    gone = TopicFacts("progress", Existence.MISSING)

    assert as_progress_topic(gone, "orders", BOOTSTRAP) == gone


def test_a_topic_that_only_compacts_keeps_its_records() -> None:
    assert as_emptiable(Role.DATA, replace(MADE, cleanup_policy="compact,delete")).keeps is None

    keeps = as_emptiable(Role.DATA, replace(MADE, cleanup_policy="compact")).keeps
    assert keeps is not None
    assert (keeps.what, keeps.repair) == ("has cleanup.policy=compact", "recreate it, or keep it")


def test_whether_a_topic_can_be_emptied_is_not_guessed() -> None:
    with pytest.raises(UnavailableError, match="DescribeConfigs"):
        as_emptiable(Role.DATA, MADE)


def test_a_topic_is_made_anew_as_it_was_where_the_spec_says_nothing() -> None:
    bare, told = CreateTopic(Role.DATA, "out"), CreateTopic(Role.DATA, "out", 2, 1, {"a": "spec"})
    settings = {"a": "set", "b": "set"}

    assert bare.anew(MADE, settings) == CreateTopic(Role.DATA, "out", 6, 3, settings)
    assert told.anew(MADE, settings) == CreateTopic(Role.DATA, "out", 2, 1, {"a": "spec", "b": "set"})
