"""What was seen of a sink's topics: plain facts, without any judgement.

Whoever observes (a sensor, a preflight, the job) fills the same types, so all of them decide the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.broker_memory import BrokerMemory
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import utc_now
from airflow_provider_sinks.core.wording import count


class Role(enum.StrEnum):
    """What a topic is to a sink."""

    SOURCE = "source topic"
    DATA = "data topic"
    DEAD_LETTER = "dead-letter topic"
    PROGRESS = "progress topic"


class Existence(enum.StrEnum):
    """Is the topic there? Not being allowed to see it is no answer."""

    PRESENT = "present"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ResourceFacts:
    """What was seen of one topic.

    :param system: the id of the Kafka cluster, or of the database system and the database in it.
    :param id: what the system gives it once: a topic id, as ``kafka-topics.sh`` spells it; a table's oid.
    :param low: first offset of each partition; empty if not looked at.
    :param high: offset after the last record of each partition, open transactions included.
    :param cleanup_policy: as the broker applies it; None if not looked at or hidden.
    :param reason: why something could not be seen.
    :param denied: the operation that an ACL denied, such as ``Describe``.
    """

    name: str
    existence: Existence
    system: str = ""
    id: str = ""
    partitions: int = 0
    replication_factor: int = 0
    low: Mapping[int, int] = field(default_factory=dict)
    high: Mapping[int, int] = field(default_factory=dict)
    cleanup_policy: str | None = None
    reason: str = ""
    denied: str = ""

    @property
    def identity(self) -> Identity:
        """Which topic this really is."""
        return Identity(self.system, self.name, self.id, self.partitions)

    @property
    def records(self) -> int:
        """At most how many records the topic holds; marks of transactions and compacted offsets count too."""
        return sum(high - self.low.get(partition, 0) for partition, high in self.high.items())

    def __str__(self) -> str:
        if self.existence is not Existence.PRESENT:
            return f'"{self.name}" {self.existence}' + (f" ({self.reason})" if self.reason else "")
        size = count(self.partitions, "partition")
        return f'"{self.name}" {size}, id {self.id}, cluster {self.system}'


@dataclass(frozen=True)
class Observation:
    """Everything the decision is made from.

    :param history: what the progress topic says; None if it could not be read.
    :param history_reason: why it could not be read.
    :param history_hint: what helps to read it.
    :param bootstrap: servers of the target's cluster, for the commands in hints.
    :param checkpoint: what stands in Spark's checkpoint; None where nobody looked, as in Airflow.
    :param broker: what the transaction coordinators remember; None where nobody asked, because records do.
    :param at: when this was seen, in UTC.
    """

    source: ResourceFacts
    data: ResourceFacts
    progress: ResourceFacts
    dead_letter: ResourceFacts | None
    history: History | None
    history_reason: str = ""
    history_hint: str = ""
    bootstrap: str = ""
    checkpoint: CheckpointFacts | None = None
    broker: BrokerMemory | None = None
    at: str = field(default_factory=utc_now)

    def topics(self) -> dict[Role, ResourceFacts]:
        """Return the facts of each topic that the sink has, in the order of their importance."""
        found = {Role.SOURCE: self.source, Role.DATA: self.data, Role.DEAD_LETTER: self.dead_letter}
        return {role: facts for role, facts in {**found, Role.PROGRESS: self.progress}.items() if facts}

    @property
    def known(self) -> History:
        """What the progress topic says, or nothing where it could not be read."""
        return self.history if self.history is not None else NO_HISTORY

    @property
    def recorded(self) -> dict[Role, Identity]:
        """Which topics the run in force announced; empty without a record."""
        known = self.known.identities
        if known is None:
            return {}
        found = {Role.SOURCE: known.source, Role.DATA: known.data, Role.DEAD_LETTER: known.dead_letter}
        return {role: topic for role, topic in {**found, Role.PROGRESS: known.progress}.items() if topic}

    def identities(self) -> Identities:
        """Return the identities of all topics, for the record that announces a run.

        :raises UnavailableError: a topic is not there, or not to be seen, although it was just made sure of.
        """
        for role, facts in self.topics().items():
            if facts.existence is not Existence.PRESENT:
                raise UnavailableError(
                    f'{role} "{facts.name}" is {facts.existence} although it should be there by now',
                    facts.reason or "It was deleted a moment ago, or a broker has not heard of it yet.",
                    "Try again: the next start looks anew.",
                )
        dead_letter = self.dead_letter.identity if self.dead_letter else None
        return Identities(self.source.identity, self.data.identity, self.progress.identity, dead_letter)


class Creation(Protocol):
    """An action: an output, or the progress place, must exist. How, only its connector knows."""

    @property
    def role(self) -> Role:
        """What it is to the sink."""

    @property
    def name(self) -> str:
        """Its name in the target."""

    def for_source(self, source: ResourceFacts) -> Creation:
        """Return it with what hangs on the source filled in, such as the number of partitions."""

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> Creation:
        """Return how to make it as it was, where the spec names nothing else.

        :param before: what was there.
        :param settings: what an administrator had set for it.
        """
