"""What the driver of a run knows to be committed, what may follow it, and the records that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.history import History, is_behind
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    utc_now,
)
from airflow_provider_sinks.streaming.source import Offsets
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
    :param announced: the totals that the run was announced with.
    """

    newest: ProgressRecord
    positions: dict[int, int]
    totals: dict[WriterId, tuple[int, int]]
    writers: set[WriterId]
    holders: dict[WriterId, str] = field(default_factory=dict)
    announced: Mapping[WriterId, tuple[int, int]] = field(default_factory=dict)

    def sums(self) -> tuple[int, int]:
        """Return rows and dead letters of all writers in this generation."""
        return sum(rows for rows, _ in self.totals.values()), sum(dead for _, dead in self.totals.values())

    def is_ahead_of(self, history: History) -> bool:
        """Whether the target has forgotten what this run knows to be committed.

        Each writer is compared for itself: what one has written meanwhile hides nothing of another's.
        """
        if history.generation != self.newest.generation:
            return history.generation < self.newest.generation
        found = history.totals()
        return any(is_behind(found.get(writer, (0, 0)), known) for writer, known in self.totals.items())

    def next_record(
        self, sink: str, checkpoint: str, batch_id: int, begin: Offsets, end: Offsets
    ) -> ProgressRecord:
        """Return the record of the epoch over a range, still without rows and time.

        :param checkpoint: the folder of Spark's checkpoint, whose batch it is.
        :raises JobFailedError: when the range neither repeats nor follows what is committed.
        """
        newest = self.newest
        begin = {partition: begin.get(partition, 0) for partition in end}
        replayed = (newest.checkpoint, newest.batch) == (checkpoint, batch_id) and _fits(newest, begin, end)
        epoch = newest.epoch if replayed else newest.epoch + 1
        if not replayed:
            self._demand_no_gap(sink, begin, epoch)
        return replace(newest, epoch=epoch, from_=begin, to=end, checkpoint=checkpoint, batch=batch_id)

    def _demand_no_gap(self, sink: str, begin: Offsets, epoch: int) -> None:
        gaps = {p: at for p, at in begin.items() if self.positions.get(p, 0) < at}
        if gaps:
            known = {partition: self.positions.get(partition, 0) for partition in gaps}
            raise JobFailedError(
                f'epoch {epoch} of sink "{sink}" would leave a gap',
                f"It starts at {gaps} (offset by source partition), but only {known} are committed.",
                "Start the sink again: it resumes from its progress with a new checkpoint.",
            )

    def driver_record(self, record: ProgressRecord) -> ProgressRecord:
        """Return the driver's record that names the epoch of ``record`` and everything committed so far."""
        positions = dict(self.positions)
        rows_total, dead_total = self.totals.get(DRIVER, (0, 0))
        return replace(
            record,
            from_=positions,
            to=positions,
            rows=0,
            rows_total=rows_total,
            dead_total=dead_total,
            writers=tuple(sorted(self.writers)),
            totals={writer: totals for writer, totals in self.totals.items() if writer != DRIVER},
        )

    def writers_record(self, record: ProgressRecord) -> ProgressRecord:
        """Return what each writer of an epoch commits with its rows: it names what the others had committed.

        Only what this run has changed: the rest stands in its announcement. A single writer has no others.
        """
        alone = (DRIVER, SINGLE_WRITER)
        changed = {
            writer: totals
            for writer, totals in self.totals.items()
            if writer not in alone and totals != self.announced.get(writer, (0, 0))
        }
        return replace(without_drivers_own(record), totals=changed)

    def whole_record(self, record: ProgressRecord, reports: Sequence[TaskReport]) -> ProgressRecord:
        """Return the record that the driver commits together with all rows of an epoch.

        It is the one of a single writer, whoever staged the rows: they become visible all at once, and the
        driver's own record goes on saying which run is in force.
        """
        rows, dead = sum(r.rows for r in reports), sum(r.dead for r in reports)
        rows_total, dead_total = self.totals.get(SINGLE_WRITER, (0, 0))
        return replace(
            without_drivers_own(record),
            rows=rows,
            rows_total=rows_total + rows,
            dead_total=dead_total + dead,
            at=utc_now(),
        )


def without_drivers_own(record: ProgressRecord) -> ProgressRecord:
    """Return a record without what the driver's alone says: spec, writers and their totals."""
    return replace(record, spec="", writers=(), writer_mode="", totals={})


def _fits(newest: ProgressRecord, begin: Offsets, end: Offsets) -> bool:
    """Whether a record can be of this range; one written after a step of it ends earlier."""
    return dict(newest.from_) == begin and all(at <= end.get(p, 0) for p, at in newest.to.items())
