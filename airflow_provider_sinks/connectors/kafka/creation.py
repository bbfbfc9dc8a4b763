"""How the topics of a sink are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.connectors.kafka.topic_facts import TopicFacts
from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role
from airflow_provider_sinks.core.wording import count


@dataclass(frozen=True)
class CreateTopic:
    """An action: this topic must exist.

    :param partitions: how many; None means as many as the source topic has.
    :param replication_factor: None means what the broker does by default.
    """

    role: Role
    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    def for_source(self, source: ResourceFacts) -> CreateTopic:
        """Return it with as many partitions as the source has, where the spec names no number."""
        return replace(self, partitions=self.partitions or source.partitions)

    @property
    def hindrance(self) -> None:
        """Nothing: the broker alone decides."""
        return None

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> CreateTopic:
        """Return it with the partitions, copies and settings of the topic that was there."""
        copies = before.replication_factor if isinstance(before, TopicFacts) else None
        return replace(
            self,
            partitions=self.partitions or before.partitions,
            replication_factor=self.replication_factor or copies,
            config={**settings, **self.config},
        )

    def __str__(self) -> str:
        copies = f", replication factor {self.replication_factor}" if self.replication_factor else ""
        settings = "".join(f", {name}={value}" for name, value in sorted(self.config.items()))
        return (
            f'create {self.role} "{self.name}": {count(self.partitions or 0, "partition")}{copies}{settings}'
        )


PROGRESS_CONFIG: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Compacted, exactly, and cleaned early: a start reads this topic, and the open segment is never cleaned."""


def progress_topic(name: str, replication_factor: int | None = None) -> CreateTopic:
    """Return how a progress topic must be made: one partition, because its order is the truth."""
    return CreateTopic(Role.PROGRESS, name, 1, replication_factor, PROGRESS_CONFIG)
