"""One task of an epoch: becomes a writer with its first row, hands rows over, commits when all were seen."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import (
    EpochWriter,
    InDoubtError,
    RejectedRowError,
    WriteResult,
)
from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits, too_many
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.progress.history import is_behind
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord, partition_writer
from airflow_provider_sinks.streaming import held_writers
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan, StopDriverError
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport

_ERRORS_MAX = 1000
"""An error may quote a value, so that each is another one."""


class Task(ABC):
    """One task of an epoch, from its first row to its commit."""

    def __init__(self, plan: EpochPlan) -> None:
        self.plan = plan
        self.writer_id = ""
        self.written = WriteResult(0, 0, 0)
        self.committed = WriteResult(0, 0, 0)
        self.skips = False
        self._prepared = self._prepare()
        self._writer: EpochWriter | None = None
        self._staged = ""
        self._errors: Counter[str] = Counter()
        self._open_ms = self._write_ms = self._commit_ms = 0

    @abstractmethod
    def take(self, batch: pa.RecordBatch) -> None:
        """Write what is new in a batch."""

    def finish(self) -> TaskReport:
        """Commit what is open. Called only after the input was proved complete."""
        if self._writer is None:
            self._drop_prepared()
            return TaskReport(self.writer_id, Outcome.NOTHING)
        if self._is_open:
            self._commit(dict(self.plan.record.to))
        held_writers.keep(self._held_key(self.writer_id), self._writer)
        last = self._writer.last
        return TaskReport(
            self.writer_id,
            Outcome.SKIPPED if self.skips else Outcome.COMMITTED,
            self.committed.rows,
            self.committed.dead,
            last.rows_total if last else 0,
            last.dead_total if last else 0,
            self.committed.size_bytes,
            self._writer.holder_id,
            self._staged,
            open_ms=self._open_ms,
            write_ms=self._write_ms,
            commit_ms=self._commit_ms,
        )

    def give_up(self) -> None:
        """Leave nothing behind but whole commits."""
        self._drop_prepared()
        if self._writer is not None:
            self._writer.rollback_epoch()
            self._writer.close()
            self._writer = None

    @property
    def _is_open(self) -> bool:
        return bool(self.written.rows or self.written.dead)

    def _open(self, writer_id: str) -> ProgressRecord | None:
        """Become this writer and return the newest record of it, or of the driver that commits for it."""
        started = time.monotonic()
        self.writer_id = writer_id
        held = held_writers.take(self._held_key(writer_id))
        if held is not None and held.holder_id == self.plan.holders.get(writer_id):
            self._drop_prepared()
            self._writer = held
        else:
            if held is not None:
                held.close()
            self._writer = self._take_prepared(writer_id)
            self._writer.open()
        self._demand_not_rolled_back(self._writer.last)
        self._writer.begin_epoch(self.plan.record.epoch)
        self._open_ms = _ms_since(started)
        return self.plan.newest or self._writer.last

    def _demand_not_rolled_back(self, last: ProgressRecord | None) -> None:
        """See that the target knows of all that this run has committed; the position would hide what is gone.

        A target may forget under a running sink: a replica that lags behind takes over, a backup is restored
        in place. Rows and record are gone together then, and the driver alone remembers.

        :raises RefusedError: it knows less. The next start decides, by what Airflow remembers.
        """
        if self.plan.driver_commits:
            return  # it compares what it commits to with what it knows
        committed = self.plan.totals.get(self.writer_id, (0, 0))
        found = (last.rows_total, last.dead_total) if last else (0, 0)
        if is_behind(found, committed):
            raise RefusedError(
                f'progress of sink "{self.plan.sink}" was rolled back while the sink ran',
                f"Writer {self.writer_id} had committed {_counted(committed)}; the target knows of "
                f"{_counted(found)}.",
                "Start the sink again: it says what is missing, and what can be done.",
            )

    def _write(self, batch: pa.RecordBatch) -> None:
        started = time.monotonic()
        assert self._writer is not None  # noqa: S101  _open comes first
        self._demand_parsed(batch)
        self._count_errors(batch)
        try:
            self.written += self._writer.write_batch(batch)
        except RejectedRowError as rejected:
            if rejected.row is None:
                raise
            where = coordinates(self.plan.source_topic, batch, rejected.row)
            raise StopDriverError(
                rejected.primary, f"{where} {rejected.detail}".strip(), rejected.hint
            ) from rejected
        self._write_ms += _ms_since(started)

    def _count_errors(self, batch: pa.RecordBatch) -> None:
        """Remember what is wrong, where it may have to be told."""
        errors = batch.column(rows.ERROR)
        is_limited = self.plan.limits != SetAsideLimits() and len(self._errors) < _ERRORS_MAX
        if is_limited and errors.null_count < len(errors):
            self._errors.update(errors.drop_null().to_pylist())

    def _demand_parsed(self, batch: pa.RecordBatch) -> None:
        errors = batch.column(rows.ERROR)
        if self.plan.has_dead_letters or errors.null_count == len(errors):
            return
        row = next(i for i, error in enumerate(errors) if error.is_valid)
        raise StopDriverError(
            f'sink "{self.plan.sink}" read a record that does not parse',
            f"{coordinates(self.plan.source_topic, batch, row)} {errors[row].as_py()}",
            f"Add `dead_letter: {self.plan.dead_letter_example}` to the sink to set such records aside, "
            "or mend the schema.",
        )

    def _commit(self, to: dict[int, int]) -> None:
        started = time.monotonic()
        assert self._writer is not None  # noqa: S101  _open comes first
        record = self._record(to)
        self.plan.demand_source(record.identities.source)
        self._writer.flush()
        try:
            token = self._writer.pre_commit(record)
            late = record.rows - token.rows
            record, self.written = record.with_set_aside(late), self.written + WriteResult(-late, late, 0)
            self._demand_few_dead(to)
            if self.plan.driver_commits:
                self._staged = token.name
            else:
                self._writer.commit_epoch()
        except InDoubtError:
            self._resolve_doubt(record)
        self.committed += self.written
        self.written = WriteResult(0, 0, 0)
        self._commit_ms += _ms_since(started)

    def _demand_few_dead(self, to: dict[int, int]) -> None:
        """Stop before the commit of an epoch that sets too much aside.

        :raises SetAsideError: it does.
        """
        begin, dead = self.plan.record.from_, self.committed.dead + self.written.dead
        own = {p: at for p, at in to.items() if self.writer_id in (SINGLE_WRITER, partition_writer(p))}
        records = sum(at - begin.get(p, 0) for p, at in own.items())
        if why := self.plan.limits.exceeded(records, dead):
            ranges = ", ".join(f"{p}: {begin.get(p, 0):,} to {at:,}" for p, at in sorted(own.items()))
            place = f'epoch {self.plan.record.epoch}, source "{self.plan.source_topic}", offsets {ranges}'
            counted = (records, dead, self.committed.dead)
            raise too_many(self.plan.sink, place, counted, why, self._errors)

    def _resolve_doubt(self, record: ProgressRecord) -> None:
        """Ask the target whether a commit happened. A task that cannot know raises and is repeated."""
        doubtful, self._writer = self._writer, None
        assert doubtful is not None  # noqa: S101
        doubtful.rollback_epoch()
        doubtful.close()
        self._writer = self.plan.factory.prepare(self.writer_id)
        self._writer.open()
        if self._writer.last != record:
            raise InDoubtError(
                f'a commit of sink "{self.plan.sink}", writer {self.writer_id}, did not happen',
                "The broker did not answer it, and no progress record is there: nothing of it is visible.",
            )
        self._writer.begin_epoch(self.plan.record.epoch)

    def _record(self, to: dict[int, int]) -> ProgressRecord:
        last = self._writer.last if self._writer else None
        return replace(
            self.plan.record,
            to=to,
            rows=self.written.rows,
            rows_total=(last.rows_total if last else 0) + self.written.rows,
            dead_total=(last.dead_total if last else 0) + self.written.dead,
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    def _held_key(self, writer_id: str) -> held_writers.HeldKey:
        return (self.plan.sink, self.plan.record.run, writer_id)

    def _prepare(self) -> tuple[str, EpochWriter] | None:
        """Connect early for the writer that this task will probably be, unless this worker holds it."""
        expected = self._expected_writer()
        if expected is None:
            return None
        held = held_writers.holder_id(self._held_key(expected))
        if held is not None and held == self.plan.holders.get(expected):
            return None
        return expected, self.plan.factory.prepare(expected)

    @abstractmethod
    def _expected_writer(self) -> str | None:
        """Return the writer that this task will probably be."""

    def _take_prepared(self, writer_id: str) -> EpochWriter:
        if self._prepared is not None and self._prepared[0] == writer_id:
            writer, self._prepared = self._prepared[1], None
            return writer
        self._drop_prepared()
        return self.plan.factory.prepare(writer_id)

    def _drop_prepared(self) -> None:
        if self._prepared is not None:
            self._prepared[1].close()
            self._prepared = None


def coordinates(topic: str, batch: pa.RecordBatch, row: int) -> str:
    """Return where a row came from, for the beginning of a sentence."""
    partition, offset = batch.column(rows.PARTITION)[row].as_py(), batch.column(rows.OFFSET)[row].as_py()
    return f"Record {topic}/{partition} at offset {offset}:" if partition is not None else "An output row:"


def _counted(totals: tuple[int, int]) -> str:
    rows_total, dead_total = totals
    return f"{rows_total:,} rows and {dead_total:,} dead letters"


def _ms_since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
