"""What an arm is told, and what it gives back. An arm is one way to copy a topic."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import Service
from tests.bench.peers.workloads import Workload


@dataclass(frozen=True)
class Work:
    """One run.

    :param source: the topic to copy.
    :param target: the topic to write, which exists already, with as many partitions.
    :param folder: for launches, checkpoints and logs; fresh for each run.
    :param rows: in the source, when the run begins or later.
    :param rows_per_commit: where that can be set; else ``commit_every`` says about the same.
    :param commit_every: how long Flink takes for so many rows, by a run that was not counted.
    :param endless: the source grows while the arm runs.
    :param users: the server with the lookup table, if the workload has one.
    """

    bootstrap: str
    source: str
    target: str
    folder: Path
    workload: Workload
    partitions: int
    rows: int
    rows_per_commit: int
    commit_every: timedelta = timedelta(seconds=1)
    endless: bool = False
    users: Postgres | None = None

    def service(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> Service:
        """Start a program of the arm in a session of its own."""
        service = Service(name, argv, self.folder, env=environment)
        service.start()
        return service


class Kind(enum.Enum):
    """What a run of an arm does with the source; the limits do half of it."""

    COPIES = "copies"
    WRITES_ONLY = "writes only"
    READS_ONLY = "reads only"


@dataclass
class Running:
    """An arm at work.

    :param services: its processes.
    :param ends: whether it ends by itself when all rows are copied.
    """

    services: Sequence[Service]
    ends: bool = True
    notes: list[str] = field(default_factory=list)

    def look(self) -> None:
        """See to it. Called several times a second while it runs.

        :raises LocalServiceError: it has failed, although its process lives.
        """

    def start_parts(self) -> Mapping[str, float]:
        """Return how many seconds each part of its start took, as far as it can be seen from outside."""
        return {}

    def rate(self) -> float | None:
        """Return the rows per second by its own account. Called at its end where no rows can be read back."""
        return None


class Arm(Protocol):
    """One way to copy."""

    @property
    def name(self) -> str:
        """For tables."""

    @property
    def kind(self) -> Kind:
        """What it does with the source."""

    def target(self, work: Work) -> str:
        """Return the name of the topic it writes; most let it be chosen."""

    def start(self, work: Work) -> Running:
        """Start copying and return at once.

        :raises LocalServiceError: it cannot be started on this machine; what is missing is in the hint.
        """


@dataclass(frozen=True)
class CopyingArm:
    """What most arms have in common."""

    name: str

    @property
    def kind(self) -> Kind:
        """See :class:`Arm`."""
        return Kind.COPIES

    def target(self, work: Work) -> str:
        """See :class:`Arm`."""
        return work.target
