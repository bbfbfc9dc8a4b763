"""What was seen of a sink's source, outputs and progress place: plain facts, without any judgement.

Whoever observes (a sensor, a preflight, the job) fills the same types, so all of them decide the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, UnavailableError
from airflow_provider_sinks.core.evolution import NeedsMigration
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import Identities, Identity, ResourceKind
from airflow_provider_sinks.core.progress.log_place import LogPlace
from airflow_provider_sinks.core.progress.record import utc_now
from airflow_provider_sinks.core.progress.target_memory import TargetMemory
from airflow_provider_sinks.core.wording import count


class Role(enum.StrEnum):
    """What a resource is to a sink. The values are part of accept codes, for tables too."""

    SOURCE = "source topic"
    DATA = "data topic"
    DEAD_LETTER = "dead-letter topic"
    PROGRESS = "progress topic"

    def called(self, kind: ResourceKind) -> str:
        """Return what it is called where it is of some kind, such as ``data table``."""
        return f"{self.removesuffix(ResourceKind.TOPIC.value)}{kind.value}"


class Existence(enum.StrEnum):
    """Is the resource there? Not being allowed to see it is no answer."""

    PRESENT = "present"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Unfit:
    """Why a resource that is there cannot be used as it is. The connector that looked says all of it.

    :param what: what is wrong, to follow its name: ``has 2 partitions``, ``has no column region``.
    :param why: why a sink cannot use it so, in whole sentences.
    :param repair: the command or the setting that mends it.
    :param is_others: it is in use by others, so that it is never made anew for this sink.
    """

    what: str
    why: str
    repair: str
    is_others: bool = False


@dataclass(frozen=True)
class ResourceFacts:
    """What was seen of one resource: a topic, or a table.

    :param system: the id of the cluster, or of the database system and the database in it.
    :param id: what the system gives it once, as its own tools spell it: a topic id; a table's oid.
    :param low: first offset of each partition; empty if not looked at.
    :param high: offset after the last record of each partition, open transactions included.
    :param stable: where a reader of committed records ends, in each partition of a topic: at the first record
        of the oldest open transaction, or at ``high``.
    :param leader_epochs: the newest leader epoch of each partition of a topic, when it ended at ``high``; one
        that is not known is left out.
    :param size_bytes: what the rows of a table take, dead ones included; 0 tells that there is none.
    :param reason: why something could not be seen.
    :param grant: the command that lets it be seen.
    :param hidden: what of it could not be seen, although it is there and that matters, such as a setting.
    :param unfit: why it cannot be used as it is.
    :param keeps: why it cannot be emptied, where that is asked for.
    :param newest_of_key_wins: of the entries of one key it keeps the newest, where that is asked for.
    """

    name: str
    existence: Existence
    system: str = ""
    id: str = ""
    partitions: int = 0
    low: Mapping[int, int] = field(default_factory=dict)
    high: Mapping[int, int] = field(default_factory=dict)
    stable: Mapping[int, int] = field(default_factory=dict)
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    size_bytes: int = 0
    reason: str = ""
    grant: str = ""
    hidden: str = ""
    unfit: Unfit | None = None
    keeps: Unfit | None = None
    newest_of_key_wins: bool = False
    kind: ResourceKind = ResourceKind.TOPIC

    @property
    def identity(self) -> Identity:
        """Which resource this really is."""
        return Identity(self.system, self.name, self.id, self.partitions)

    @property
    def records(self) -> int:
        """At most how many records it holds; marks of transactions and compacted offsets count too."""
        return sum(high - self.low.get(partition, 0) for partition, high in self.high.items())

    @property
    def ends(self) -> dict[int, LogPlace]:
        """Where the log of each partition ended, as far as its leader epoch is known."""
        return {p: LogPlace(self.high[p], e) for p, e in self.leader_epochs.items() if p in self.high}

    def leader_epochs_at(self, positions: Mapping[int, int]) -> dict[int, int]:
        """Return the leader epochs of those partitions that reach their position."""
        reached = {
            partition for partition, at in positions.items() if 0 <= at <= self.high.get(partition, -1)
        }
        return {partition: e for partition, e in self.leader_epochs.items() if partition in reached}

    @property
    def is_empty(self) -> bool:
        """Whether it certainly holds nothing."""
        return not self.records and not self.size_bytes

    @property
    def contents(self) -> str:
        """At most how much it holds, such as ``up to 200 records`` or ``up to 16 KiB of rows``."""
        if self.size_bytes:
            return f"up to {-(-self.size_bytes // 1024):,} KiB of rows"
        return f"up to {count(self.records, self.kind.entry)}"

    def title(self, role: Role) -> str:
        """Return what it is called in a sentence, such as ``data topic "orders"``."""
        return f'{role.called(self.kind)} "{self.name}"'

    def heading(self, role: Role) -> str:
        """Return what it is called at the beginning of a sentence."""
        title = self.title(role)
        return title[0].upper() + title[1:]

    def __str__(self) -> str:
        if self.existence is not Existence.PRESENT:
            return f'"{self.name}" {self.existence}' + (f" ({self.reason})" if self.reason else "")
        size = f" {count(self.partitions, 'partition')}," if self.partitions else ""
        return f'"{self.name}"{size} id {self.id}, {self.kind.system} {self.system}'


class Creation(Protocol):
    """An action: an output, or the progress place, must exist. How, only its connector knows."""

    @property
    def role(self) -> Role:
        """What it is to the sink."""

    @property
    def name(self) -> str:
        """Its name in the target."""

    @property
    def hindrance(self) -> Unfit | None:
        """Why it cannot be made as it stands here; asked before something else is deleted for it."""

    def for_source(self, source: ResourceFacts) -> Creation:
        """Return it with what hangs on the source filled in, such as the number of partitions."""

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> Creation:
        """Return how to make it as it was, where the spec names nothing else.

        :param before: what is there, and is deleted first.
        :param settings: what somebody has set for it.
        """


def demand_makeable(creation: Creation, kind: ResourceKind) -> None:
    """Stop where an output cannot be made.

    :raises ConfigurationError: with the reason.
    """
    if (hindrance := creation.hindrance) is not None:
        problem = Problem(creation.name, f"{hindrance.what}: {hindrance.why}")
        title = f'{creation.role.called(kind)} "{creation.name}"'
        raise ConfigurationError(f"{title} cannot be made", [problem], hindrance.repair)


@dataclass(frozen=True)
class Observation:
    """Everything the decision is made from.

    :param history: what the progress place says; None if it could not be read.
    :param history_reason: why it could not be read.
    :param history_hint: what helps to read it.
    :param checkpoint: what stands in Spark's checkpoint; None where nobody looked, as in Airflow.
    :param memory: what the target remembers beside its records; None where nobody asked, because records do,
        or the target remembers nothing.
    :param migration: what the data output lacks for the query's columns, where the sink may have it altered;
        None where it lacks nothing, or nobody compared.
    :param kept: by source partition, up to where its log is still the one that was read, where that is before
        the place that was read to; a partition that has lost nothing, or cannot tell, is left out.
    :param at: when this was seen, in UTC.
    """

    source: ResourceFacts
    data: ResourceFacts
    progress: ResourceFacts
    dead_letter: ResourceFacts | None
    history: History | None
    history_reason: str = ""
    history_hint: str = ""
    checkpoint: CheckpointFacts | None = None
    memory: TargetMemory | None = None
    migration: NeedsMigration | None = None
    kept: Mapping[int, int] = field(default_factory=dict)
    at: str = field(default_factory=utc_now)

    def resources(self) -> dict[Role, ResourceFacts]:
        """Return the facts of each resource that the sink has, in the order of their importance."""
        found = {Role.SOURCE: self.source, Role.DATA: self.data, Role.DEAD_LETTER: self.dead_letter}
        return {role: facts for role, facts in {**found, Role.PROGRESS: self.progress}.items() if facts}

    @property
    def known(self) -> History:
        """What the progress place says, or nothing where it could not be read."""
        return self.history if self.history is not None else NO_HISTORY

    @property
    def recorded(self) -> dict[Role, Identity]:
        """Which resources the run in force announced; empty without a record."""
        known = self.known.identities
        if known is None:
            return {}
        found = {Role.SOURCE: known.source, Role.DATA: known.data, Role.DEAD_LETTER: known.dead_letter}
        return {role: one for role, one in {**found, Role.PROGRESS: known.progress}.items() if one}

    def identities(self) -> Identities:
        """Return the identities of all resources, for the record that announces a run.

        :raises UnavailableError: one is not there, or not to be seen, although it was just made sure of.
        """
        for role, facts in self.resources().items():
            if facts.existence is not Existence.PRESENT:
                raise UnavailableError(
                    f"{facts.title(role)} is {facts.existence} although it should be there by now",
                    facts.reason or "It was deleted a moment ago, or a broker has not heard of it yet.",
                    "Try again: the next start looks anew.",
                )
        dead_letter = self.dead_letter.identity if self.dead_letter else None
        return Identities(self.source.identity, self.data.identity, self.progress.identity, dead_letter)
