"""One epoch after another, on the driver: give each writer its range, run the one action, keep the account.

The order within an epoch, and why it is safe:

1. identity: every topic is still the one that progress speaks of;
2. ranges: [from, to) of each source partition, from what Spark wrote down before it called us. A replay of
   the newest epoch has the range that is recorded; anything else starts where the epoch before ended. Then
   the source's log is looked at: it still has what is before a range, and reaches its end;
3. announce writers that were never used, so that the next start fences them too;
4. the action (:mod:`.epoch_action`). Each writer looks at the source's identity behind its last row, then
   commits its rows with its record, or nothing;
5. identity once more: a topic can be replaced inside a transaction, and the commit still succeeds;
6. only then is the epoch reported, and Spark may write its own commit.

A crash anywhere in between leaves at most the newest epoch torn, and its writers know what they committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.streaming.account import Account, EpochResult
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.source import CheckpointLog
from airflow_provider_sinks.streaming.source_log import SourceLog
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport


class Action(Protocol):
    """Writes the rows of one epoch after another."""

    def run(self, batch: DataFrame, record: ProgressRecord) -> Sequence[TaskReport]:
        """Write one epoch, or find that it is written, and say who wrote what."""


class Epochs:
    """What ``foreachBatch`` calls.

    :param log: Spark's own record of the offsets.
    :param source_log: the log of the source.
    :param account: what is committed so far.
    :param target: takes the records of the driver.
    :param guard: compares the topics with those that progress speaks of.
    :param patience: for a target that does not answer.
    :param action: writes the rows of an epoch, and looks at the topics behind them.
    :param finished: told of each whole epoch.
    """

    def __init__(
        self,
        settings: EpochSettings,
        *,
        log: CheckpointLog,
        source_log: SourceLog,
        account: Account,
        target: SinkConnector,
        guard: Guard,
        patience: Patience,
        action: Action,
        finished: Callable[[EpochResult], None],
    ) -> None:
        self._settings = settings
        self._log = log
        self._source_log = source_log
        self._account = account
        self._target = target
        self._guard = guard
        self._patience = patience
        self._action = action
        self._finished = finished
        self._stopping = False
        self.running = threading.Lock()
        self.failure: BaseException | None = None

    def stop(self) -> None:
        """Let no further epoch begin. Call it while holding ``running``, that is between two epochs."""
        self._stopping = True

    def go_on(self) -> None:
        """Let epochs begin again, for a query that begins anew."""
        self._stopping = False

    def give_up(self, timeout_seconds: float) -> None:
        """Let no further epoch begin, and wait a while for the one that runs: its job was cancelled."""
        self.stop()
        if self.running.acquire(timeout=timeout_seconds):
            self.running.release()

    def leave_whole(self) -> None:
        """Record how far a replay has looked, also where its last letters led to nothing.

        A writer without a row leaves no record, and whoever asks for the same replay again would be told
        that it is under way.
        """
        self._announce(self._account.newest)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run one epoch. Called by Spark, once per micro-batch, and again for an uncommitted one."""
        with self.running:
            if self._stopping:
                raise JobFailedError(f'sink "{self._settings.sink}" is stopping')
            try:
                self._finished(self._run(batch, batch_id))
            except BaseException as error:
                self.failure = error
                raise

    def _run(self, batch: DataFrame, batch_id: int) -> EpochResult:
        started = time.monotonic()
        identities = self._guard.check_before()
        record = self._next_record(batch_id)
        leader_epochs = self._source_log.leader_epochs(dict(record.from_), dict(record.to))
        record = replace(record, identities=identities, leader_epochs=leader_epochs)
        self._announce_new_writers(record)
        reports = self._action.run(batch, record)
        return self._settle(record, reports, time.monotonic() - started)

    def _next_record(self, batch_id: int) -> ProgressRecord:
        begin, end = self._log.start_offsets(batch_id), self._log.offsets(batch_id)
        return self._account.next_record(self._settings.sink, self._log.folder, batch_id, begin, end)

    def _announce_new_writers(self, record: ProgressRecord) -> None:
        new = set(self._settings.writers(record)) - self._account.writers
        if new:
            self._account.writers |= new
            self._announce(self._account.newest)

    def _announce(self, newest: ProgressRecord) -> None:
        """Commit the driver's record of an epoch, with everything that is committed so far."""
        record = self._account.driver_record(newest)
        self._patience.ask(self._target.service, lambda: self._target.announce(record))

    def _settle(self, record: ProgressRecord, reports: Sequence[TaskReport], seconds: float) -> EpochResult:
        """Enter a whole epoch into the account; leave a record of it even if no writer had a row."""
        account = self._account
        before = account.sums()
        if self._settings.driver_commits:
            whole = self._account.whole_record(record, reports)
            account.totals[SINGLE_WRITER] = whole.rows_total, whole.dead_total
        else:
            account.totals.update({r.writer: (r.rows_total, r.dead_total) for r in reports if r.writer})
        rows, dead = (now - then for now, then in zip(account.sums(), before, strict=True))
        account.positions.update({p: max(account.positions.get(p, 0), at) for p, at in record.to.items()})
        account.newest = record
        skipped = any(report.outcome == Outcome.SKIPPED for report in reports)
        if not skipped and not any(report.rows or report.dead for report in reports):
            self._announce(record)
        return EpochResult(
            record.epoch,
            rows,
            dead,
            skipped,
            seconds,
            dict(account.positions),
            tuple(reports),
        )
