"""What is seen of a topic beyond what is seen of every resource, and whether it is made as it must be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.wording import count

POLICY = "cleanup.policy"
LOST_LETTERS = "of the letters of one key only the newest would stay, and one without a key is refused"
"""Why dead letters do not go into a compacted topic."""


@dataclass(frozen=True)
class TopicFacts(ResourceFacts):
    """What was seen of one topic.

    :param cleanup_policy: as the broker applies it; None if not looked at or hidden.
    :param denied: the operation that an ACL denied, such as ``Describe``.
    """

    replication_factor: int = 0
    cleanup_policy: str | None = None
    denied: str = ""


def as_progress_topic(topic: TopicFacts, sink: str, bootstrap: str) -> TopicFacts:
    """Say whether a topic can keep the progress of a sink, and how to mend it.

    :param topic: its cleanup policy was looked at.
    :param bootstrap: its brokers, for the command.
    """
    if topic.existence is not Existence.PRESENT:
        return topic
    if topic.partitions != 1:
        return replace(topic, unfit=_too_many_partitions(topic, sink, bootstrap))
    if topic.cleanup_policy is None:
        return replace(topic, hidden=POLICY)
    fits = topic.cleanup_policy == "compact"
    return topic if fits else replace(topic, unfit=_not_compacted(topic, sink, bootstrap))


def as_emptiable(role: Role, topic: TopicFacts) -> TopicFacts:
    """Say whether the records of a topic can be deleted: only where its own policy would delete some one day.

    And whether it keeps the newest record of each key.

    :param topic: its cleanup policy was looked at.
    :raises UnavailableError: in vain.
    """
    if topic.existence is not Existence.PRESENT:
        return topic
    if topic.cleanup_policy is None:
        raise UnavailableError(
            f"{POLICY} of {topic.title(role)} could not be seen",
            topic.reason,
            "Allow DescribeConfigs on the topic.",
        )
    policies = topic.cleanup_policy.split(",")
    topic = replace(topic, newest_of_key_wins=is_compacted(topic.cleanup_policy))
    if "delete" in policies:
        return topic
    what, why = (
        f"has {POLICY}={topic.cleanup_policy}",
        "records of a topic that is only compacted cannot be deleted",
    )
    return replace(topic, keeps=Unfit(what, why, "recreate it, or keep it"))


def _too_many_partitions(topic: TopicFacts, sink: str, bootstrap: str) -> Unfit:
    return Unfit(
        f"has {count(topic.partitions, 'partition')}",
        f'The order of its records is what sink "{sink}" goes by, and it holds within one partition only.',
        f"kafka-topics.sh --bootstrap-server {bootstrap} --delete --topic {topic.name}; the sink then makes "
        f"it anew with one partition. It holds up to {topic.records:,} records: if progress is among them, "
        "the sink refuses to start without it, and the ways on are resume_from_witness and start_over.",
    )


def _not_compacted(topic: TopicFacts, sink: str, bootstrap: str) -> Unfit:
    return Unfit(
        "is not exactly compacted",
        f"Found {POLICY}={topic.cleanup_policy}, must be compact and nothing else: otherwise the broker "
        f'deletes the progress of sink "{sink}" by age or size, and rows would be written again.',
        f"kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics --entity-name "
        f"{topic.name} --add-config {POLICY}=compact",
    )


def is_compacted(policy: str) -> bool:
    """Return whether a topic keeps the newest record of each key, and so takes none without a key."""
    return "compact" in (part.strip() for part in policy.split(","))


def grant(topic: str, operation: str, bootstrap: str) -> str:
    """Return the command that allows an operation on a topic."""
    return (
        f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal User:<user of the "
        f"connection> --operation {operation} --topic {topic}"
    )
