"""The transactional ids of a sink's writers: how they are made, and whose must be fenced.

An id is made of the spec's prefix, the sink and the writer, and stays the same over restarts and generations.
A prefix may change from one start to the next, so the driver's record names every id ever used, whole.

Why fencing those is enough, and once. The run in force announced every id before it used it. A start fences
all of them before it reads, so an older producer of any of them cannot commit any more, whatever its prefix.
A task that wakes later and opens an id anew reads the progress behind its fence, and finds the newer run.
So ids under a prefix that an *announced* run has given up are dead: they are fenced again at every start, but
one that an ACL denies by now stops nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId

_JOINT = "."


def transactional_id(prefix: str, sink: str, writer: WriterId) -> str:
    """Return the id of a writer's transactions; the same over restarts and generations.

    >>> transactional_id("sinks", "orders", "p0")
    'sinks.orders.p0'
    """
    parts = (prefix, sink, writer)
    if any(_JOINT in part for part in parts):
        raise ValueError(f"{parts} cannot be joined: a part holds {_JOINT!r}")
    return _JOINT.join(parts)


@dataclass(frozen=True)
class IdsToFence:
    """Every id that a producer of the sink was ever made with, or is about to be.

    :param alive: under the prefix of the coming run, or of the run in force: all must be fenced.
    :param dead: under prefixes that were given up before the run in force announced itself.
    """

    alive: frozenset[str]
    dead: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Both."""
        return self.alive | self.dead

    def in_order(self) -> tuple[IdsToFence, IdsToFence]:
        """Return the ids of drivers, then the rest: to be fenced one group behind the other.

        A task that opens its id anew takes its run for the one in force while nobody has taken its driver's
        id. So that one is taken before any writer's: a task that opens behind its own fence then sees it.
        """
        drivers = frozenset(name for name in self.all if name.endswith(f"{_JOINT}{DRIVER}"))
        return (
            IdsToFence(self.alive & drivers, self.dead & drivers),
            IdsToFence(self.alive - drivers, self.dead - drivers),
        )


def ids_to_fence(prefix: str, sink: str, writers: Iterable[WriterId], history: History) -> IdsToFence:
    """Return whom a start must fence.

    :param prefix: of the spec that is started.
    :param writers: those of the spec that is started.
    :param history: what the records say; writers that they name count under every prefix in force.
    """
    everyone = {*writers, *history.writers_ever}
    in_force = {prefix, *(found for record in _drivers(history) if (found := _prefix(record)))}
    alive = frozenset(transactional_id(used, sink, writer) for used in in_force for writer in everyone)
    recorded = frozenset(name for record in history.records.values() for name in record.ids)
    return IdsToFence(alive, recorded - alive)


def _drivers(history: History) -> list[ProgressRecord]:
    return [record for record in (history.driver, history.in_force) if record is not None]


def _prefix(record: ProgressRecord) -> str:
    """Return the prefix of the spec that a driver's record holds; empty if it holds none."""
    spec = json.loads(record.spec) if record.spec else {}
    return str(spec.get("transactional_id_prefix", ""))
