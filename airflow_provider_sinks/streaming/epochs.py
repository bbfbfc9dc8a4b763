"""One epoch after another, on the driver: give each writer its range, run the one action, keep the account.

The order within an epoch, and why it is safe:

1. identity: every topic is still the one that progress speaks of;
2. ranges: [from, to) of each source partition, from what Spark wrote down before it called us. A replay of
   the newest epoch has the range that is recorded; anything else starts where the epoch before ended;
3. announce writers that were never used, so that the next start fences them too;
4. the action. Each writer looks at the source's identity behind its last row, then commits its rows with its
   record, or nothing;
5. identity once more: a topic can be replaced inside a transaction, and the commit still succeeds;
6. only then is the epoch reported, and Spark may write its own commit.

A crash anywhere in between leaves at most the newest epoch torn, and its writers know what they committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors.base import CommitsOn, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError, SetAsideLimits
from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    FencedError,
    JobFailedError,
    Problem,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import (
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.streaming import small_epochs
from airflow_provider_sinks.streaming.account import Account, EpochResult, without_drivers_own
from airflow_provider_sinks.streaming.arrow_batches import ArrowBatches
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.failures import explain
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.source import CheckpointLog, Offsets
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.streaming.task_report import REPORT_SCHEMA, Outcome, TaskReport
from airflow_provider_sinks.streaming.writer import write_epoch

STEP_ROWS = 1_000_000
STEP_SECONDS = 30.0
STEP_BYTES = 256 * 1024 * 1024
_REPEAT_SECONDS = 4.0
_STAGE_ATTEMPTS = 4
"""As often as Spark runs a task."""
_ENDS: Mapping[Outcome, type[SinkError]] = {
    Outcome.FENCED: FencedError,
    Outcome.TOO_MANY_DEAD: SetAsideError,
    Outcome.REFUSED: RefusedError,
}
"""What ends the driver, in the order in which it counts, when several tasks say something."""


class Epochs:
    """What ``foreachBatch`` calls.

    :param log: Spark's own record of the offsets.
    :param account: what is committed so far.
    :param single: whether one writer writes everything.
    :param stateful: whether Spark keeps state for the plan; its tasks then run as they are, before a shuffle.
    :param driver_rows_max: the largest epoch, in source records, that the driver writes itself.
    :param target: the sink's target.
    :param to_rows: turns a micro-batch and its range into the columns of a writer.
    :param check_before: returns the identities of the topics; raises when one is not what progress speaks of.
    :param check_after: the same, and looks in any case.
    :param demand_source: what a task asks before its commit; see :mod:`.source_identity`.
    :param patience: for brokers that do not answer.
    :param announce: commits a record of the driver.
    :param finished: told of each whole epoch.
    :param limits: how much a writer may set aside in one epoch.
    :param learns: told why an action failed; says whether more is known now, and it is worth another try.
    """

    def __init__(
        self,
        *,
        sink: str,
        source_topic: str,
        log: CheckpointLog,
        account: Account,
        single: bool,
        stateful: bool,
        driver_rows_max: int,
        has_dead_letters: bool,
        dead_letter_example: str,
        target: SinkConnector,
        to_rows: Callable[[DataFrame, Offsets, Offsets], DataFrame],
        check_before: Callable[[], Identities],
        check_after: Callable[[], Identities],
        demand_source: Callable[[Identity], None],
        patience: Patience,
        announce: Callable[[ProgressRecord], None],
        finished: Callable[[EpochResult], None],
        limits: SetAsideLimits,
        learns: Callable[[BaseException], bool] = lambda _: False,
    ) -> None:
        self._learns = learns
        self._sink = sink
        self._source_topic = source_topic
        self._log = log
        self._account = account
        self._single = single
        self._stateful = stateful
        self._driver_rows_max = driver_rows_max
        self._has_dead_letters = has_dead_letters
        self._dead_letter_example = dead_letter_example
        self._target = target
        self._driver_commits = target.capabilities().commits_on is CommitsOn.DRIVER
        self._factory = target.factory()
        self._to_rows = to_rows
        self._check_before = check_before
        self._check_after = check_after
        self._demand_source = demand_source
        self._limits = limits
        self._patience = patience
        self._announce = announce
        self._finished = finished
        self._has_large_rows = False
        self._batches = ArrowBatches()
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

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run one epoch. Called by Spark, once per micro-batch, and again for an uncommitted one."""
        with self.running:
            if self._stopping:
                raise JobFailedError(f'sink "{self._sink}" is stopping')
            try:
                self._finished(self._run(batch, batch_id))
            except BaseException as error:
                self.failure = error
                raise

    def _run(self, batch: DataFrame, batch_id: int) -> EpochResult:
        started = time.monotonic()
        identities = self._check_before()
        record = replace(self._next_record(batch_id), identities=identities)
        self._announce_new_writers(record)
        reports = self._written_knowingly(batch, record)
        return self._settle(record, reports, time.monotonic() - started)

    def _written_knowingly(self, batch: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the action, and again where it met a schema that had not been asked for.

        It is what Spark does with a failed task: writers are opened anew, and skip what they have committed.
        Each try knows one schema more, so it ends.
        """
        while True:
            rows = self._to_rows(batch, dict(record.from_), dict(record.to))
            if self._single:
                rows = rows.repartition(1) if self._stateful else rows.coalesce(1)
            try:
                return self._written(rows, record)
            except Exception as error:
                if not self._learns(error):
                    raise
                say(f"epoch {record.epoch} is repeated: it met a schema that had not been asked for")
                self._account.holders.clear()

    def _written(self, rows: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the action; where the driver commits, commit what its tasks have staged.

        :raises JobFailedError: what they stage is gone again and again.
        """
        for _ in range(_STAGE_ATTEMPTS):
            reports = self._act_patiently(rows, record)
            self._check_after()
            self._raise_if_stopped(reports)
            tokens = [Token(r.writer, r.staged, r.rows) for r in reports if r.staged]
            if not tokens or commit_staged(
                self._target, self._account.whole_record(record, reports), tokens, self._patience
            ):
                return reports
            say(f"epoch {record.epoch} is repeated: what its tasks had staged is gone")
        raise JobFailedError(
            f'what the tasks of sink "{self._sink}" stage is gone before it is committed',
            f"Epoch {record.epoch} was written {_STAGE_ATTEMPTS} times; the driver never found its rows.",
            f"See that executors and driver reach the same place: {self._target.service}.",
        )

    def _act_patiently(self, rows: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the action, and again while brokers are silent: it is what Spark does with a failed task.

        Its writers are opened anew each time, so what one of them has committed is skipped. The pause lets
        the guard look in between: a newer start ends this one instead of being fenced by it.
        """
        failed_at: float | None = None
        while True:
            try:
                return self._act(rows, record)
            except Exception as error:
                found = explain(error, error, self._sink)
                failed_at = failed_at or time.monotonic()
                waited = time.monotonic() - failed_at
                if not isinstance(found, UnavailableError) or waited > self._patience.bound_seconds:
                    raise
                say(f"epoch {record.epoch} is repeated: {found.primary}")
                self._account.holders.clear()
                time.sleep(_REPEAT_SECONDS)
                self._check_after()

    def _act(self, rows: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        plan = self._plan(record)
        is_small = small_epochs.is_small(record.from_, record.to, self._driver_rows_max)
        if is_small and not self._has_large_rows:
            written = small_epochs.write_here(plan, rows)
            if written is not None:
                return written
        reports = self._run_tasks(rows, plan)
        self._has_large_rows = small_epochs.is_of_large_rows(reports)
        return reports

    def _run_tasks(self, rows: DataFrame, plan: EpochPlan) -> list[TaskReport]:
        """Run the tasks, and once more where rows turned out to be larger than was allowed for."""
        while True:
            crossing = self._batches.bounded(rows)
            tasks = _numbered(crossing).mapInArrow(write_epoch(plan, crossing.columns), REPORT_SCHEMA)
            reports = [TaskReport.from_json(row.report) for row in tasks.collect()]
            if not self._batches.learn(reports):
                return reports
            say(f"epoch {plan.record.epoch} is written again: it has larger rows than those before it")
            plan = plan.repeated()

    def _next_record(self, batch_id: int) -> ProgressRecord:
        begin, end = self._log.start_offsets(batch_id), self._log.offsets(batch_id)
        return self._account.next_record(self._sink, self._log.folder, batch_id, begin, end)

    def _announce_new_writers(self, record: ProgressRecord) -> None:
        new = set(self._writers(record)) - self._account.writers
        if new:
            self._account.writers |= new
            self._announce(self._account.driver_record(self._account.newest))

    def _writers(self, record: ProgressRecord) -> tuple[WriterId, ...]:
        """Return the writers that can have rows in an epoch, in the order of Spark's tasks."""
        if self._single:
            return (SINGLE_WRITER,)
        return tuple(partition_writer(p) for p in sorted(record.to) if record.to[p] > record.from_[p])

    def _plan(self, record: ProgressRecord) -> EpochPlan:
        known = {partition: self._account.positions.get(partition, 0) for partition in record.to}
        return EpochPlan(
            sink=self._sink,
            record=without_drivers_own(record),
            single_writer=SINGLE_WRITER if self._single else None,
            source_topic=self._source_topic,
            known=known,
            holders=dict(self._account.holders),
            expected=self._writers(record),
            has_dead_letters=self._has_dead_letters,
            dead_letter_example=self._dead_letter_example,
            step_rows=STEP_ROWS,
            step_seconds=STEP_SECONDS,
            step_bytes=STEP_BYTES,
            newest=self._account.newest if self._driver_commits else None,
            demand_source=self._demand_source,
            limits=self._limits,
            factory=self._factory,
        )

    def _raise_if_stopped(self, reports: Sequence[TaskReport]) -> None:
        for report in reports:
            if report.holder:
                self._account.holders[report.writer] = report.holder
        for outcome, error in _ENDS.items():
            for report in reports:
                if report.outcome == outcome:
                    raise error(report.primary, report.detail, report.hint)
        for report in reports:
            if report.outcome == Outcome.STOPPED:
                problems = [Problem("", report.detail)] if report.detail else []
                raise ConfigurationError(report.primary, problems, report.hint)

    def _settle(self, record: ProgressRecord, reports: Sequence[TaskReport], seconds: float) -> EpochResult:
        """Enter a whole epoch into the account; leave a record of it even if no writer had a row."""
        account = self._account
        before = account.sums()
        if self._driver_commits:
            whole = self._account.whole_record(record, reports)
            account.totals[SINGLE_WRITER] = whole.rows_total, whole.dead_total
        else:
            account.totals.update({r.writer: (r.rows_total, r.dead_total) for r in reports if r.writer})
        rows, dead = (now - then for now, then in zip(account.sums(), before, strict=True))
        account.positions.update({p: max(account.positions.get(p, 0), at) for p, at in record.to.items()})
        account.newest = record
        skipped = any(report.outcome == Outcome.SKIPPED for report in reports)
        if not skipped and not any(report.rows or report.dead for report in reports):
            self._announce(account.driver_record(record))
        return EpochResult(
            record.epoch,
            rows,
            dead,
            skipped,
            seconds,
            dict(account.positions),
            tuple(reports),
        )


def _numbered(rows: DataFrame) -> DataFrame:
    """Return rows by names that ``mapInArrow`` takes: it takes none with a dot in it."""
    return rows.toDF(*(f"column{number}" for number in range(len(rows.columns))))
