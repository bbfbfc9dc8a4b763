"""What the driver of a run knows to be committed, and what each epoch adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from airflow_provider_sinks.streaming.task_report import TaskReport


@dataclass(frozen=True)
class EpochResult:
    """What one epoch did.

    :param epoch: its number.
    :param rows: rows that became visible.
    :param dead: dead letters that became visible.
    :param skipped: whether it was found committed already, wholly or in part.
    :param seconds: from the call by Spark until the epoch was whole.
    :param positions: the position of each source partition after it.
    :param reports: what each task said.
    """

    epoch: int
    rows: int
    dead: int
    skipped: bool
    seconds: float
    positions: Mapping[int, int]
    reports: Sequence[TaskReport] = field(repr=False)


@dataclass
class Account:
    """What the driver knows to be committed; changes only when an epoch is whole.

    :param newest: a record of the newest epoch, filled in for the run that is in force.
    :param positions: by source partition, the position.
    :param holders: by writer, the id of its last holder in this run.
    :param totals: by writer, rows and dead letters in this generation.
    :param writers: every writer id ever used.
    """

    newest: ProgressRecord
    positions: dict[int, int]
    totals: dict[WriterId, tuple[int, int]]
    writers: set[WriterId]
    holders: dict[WriterId, str] = field(default_factory=dict)

    def sums(self) -> tuple[int, int]:
        """Return rows and dead letters of all writers in this generation."""
        return sum(rows for rows, _ in self.totals.values()), sum(dead for _, dead in self.totals.values())
