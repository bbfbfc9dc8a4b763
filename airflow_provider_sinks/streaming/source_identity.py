"""The last look at the source before a commit: the rows of an epoch must be those of the recorded topic.

A topic that is deleted and made again under its name is read on at the old offsets by Spark's consumer: it
fetches by topic id, but takes the new id from the cluster as soon as the old one is unknown. So a writer
looks once more behind its last row and before its commit, and commits only under the recorded id.

Why that is enough. An id never comes back, so a name that has the recorded id *behind* the last row has had
it at each row before. The brokers hear of topics from one log, each in its order. A broker that is asked may
be behind another that served the rows; then it would have to lag by more than the time in which the old topic
was deleted, the new one made and filled beyond the recorded offset, and those rows read. On one broker that
cannot be. On several it is the only way left, and the driver's own look behind the commits finds it: the
refusal says how many rows that epoch has committed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from airflow_provider_sinks.connectors.source import SourceLook
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.identity import Identity


@dataclass(frozen=True)
class DemandSource:
    """How a task looks at the source. Pickled into the tasks."""

    look: SourceLook

    def __call__(self, recorded: Identity) -> None:
        """Raise unless the source topic is the recorded one.

        :raises RefusedError: it is another one, or gone.
        :raises UnavailableError: that could not be seen.
        """
        demand_same(Role.SOURCE, recorded, self.look(recorded.name))


def demand_same(role: Role, was: Identity, facts: ResourceFacts) -> None:
    """Raise unless a resource is the one that was announced.

    :raises RefusedError: it is another one, or gone.
    :raises UnavailableError: it could not be seen.
    """
    title = f'{role.called(facts.kind)} "{was.name}"'
    if facts.existence is Existence.UNKNOWN:
        raise UnavailableError(f"{title} cannot be seen", facts.reason)
    if facts.existence is Existence.MISSING:
        raise RefusedError(
            f"{title} was deleted while the sink ran",
            f"It had id {was.id}" + (f" and {was.partitions} partitions." if was.partitions else "."),
            "Start the sink again: it decides from its progress what can be done.",
        )
    now = facts.identity
    if not now.compared_with(was).is_same:
        raise RefusedError(
            f"{title} was replaced while the sink ran",
            f"It was {_which(was, ' partitions')} and is {_which(now)}.",
            "Start the sink again: it decides from its progress what can be done.",
        )


def demand_undisturbed(decided_on: Observation, now: Observation, made: Collection[Role]) -> None:
    """Raise unless what was there when a start decided is there still, under the same names.

    Positions were decided on for what was there, and a run announces what is there now. What is gone by now,
    :meth:`.Observation.identities` says.

    :param made: what the start itself has made in between.
    :raises UnavailableError: one is another by now; the next start decides on it.
    """
    before = decided_on.resources()
    for role, facts in now.resources().items():
        was = before[role]
        if role in made or not was.existence is facts.existence is Existence.PRESENT:
            continue
        if not facts.identity.compared_with(was.identity).is_same:
            raise UnavailableError(
                f"{was.title(role)} was replaced while the sink was being started",
                f"It was {_which(was.identity, ' partitions')} and is {_which(facts.identity)}.",
                "Start the sink again: it decides on what is there now.",
            )


def _which(identity: Identity, unit: str = "") -> str:
    return identity.id + (f" ({identity.partitions}{unit})" if identity.partitions else "")
