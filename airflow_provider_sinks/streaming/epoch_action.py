"""The one action of an epoch: tasks write their rows; where the driver commits, it commits what they staged.

It is run again where that may help (:mod:`.core.retries`), and where rows are larger than was allowed for. To
run it again is what Spark does with a failed task: what of it is committed, its writer finds behind its own
fence, and leaves out (:mod:`.writer`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError
from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    FencedError,
    JobFailedError,
    Problem,
    RefusedError,
    SinkError,
)
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.core.retries import RETRIES, Trouble
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_tasks import EpochTasks
from airflow_provider_sinks.streaming.failures import explain
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport

_ENDS: Mapping[Outcome, type[SinkError]] = {
    Outcome.FENCED: FencedError,
    Outcome.TOO_MANY_DEAD: SetAsideError,
    Outcome.REFUSED: RefusedError,
}
"""What ends the driver, in the order in which it counts, when several tasks say something."""


class EpochAction:
    """Writes the rows of one epoch after another.

    :param account: what is committed so far; here only the holders of its writers change.
    :param target: the sink's target.
    :param guard: looks at the topics behind each action.
    :param patience: for brokers that do not answer.
    :param tasks: runs them, each with its rows.
    :param learns: told why an action failed; says whether more is known now, and it is worth another try.
    """

    def __init__(
        self,
        settings: EpochSettings,
        *,
        account: Account,
        target: SinkConnector,
        guard: Guard,
        patience: Patience,
        tasks: EpochTasks,
        learns: Callable[[BaseException], bool] = lambda _: False,
    ) -> None:
        self._settings = settings
        self._account = account
        self._target = target
        self._guard = guard
        self._patience = patience
        self._tasks = tasks
        self._learns = learns

    def run(self, batch: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the action, and again where it met a schema that had not been asked for.

        It is what Spark does with a failed task: writers are opened anew, and skip what they have committed.
        Each try knows one schema more, so it ends.
        """
        while True:
            rows = self._tasks.rows(batch, record)
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
        times = 1
        while True:
            reports = self._act_patiently(rows, record)
            self._guard.check()
            self._raise_if_stopped(reports)
            tokens = _tokens(reports)
            if not tokens or commit_staged(
                self._target, self._account.whole_record(record, reports), tokens, self._patience
            ):
                return reports
            if not RETRIES[Trouble.STAGE_GONE].epoch.goes_on(times=times):
                raise JobFailedError(
                    f'what the tasks of sink "{self._settings.sink}" stage is gone before it is committed',
                    f"Epoch {record.epoch} was written {times} times; the driver never found its rows.",
                    f"See that executors and driver reach the same place: {self._target.service}.",
                )
            say(f"epoch {record.epoch} is repeated: what its tasks had staged is gone")
            times += 1

    def _act_patiently(self, rows: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the action, and again while a service is silent: it is what Spark does with a failed task.

        Its writers are opened anew each time, so what one of them has committed is skipped. The pause lets
        the guard look in between: a newer start ends this one instead of being fenced by it.
        """
        failed_at: float | None = None
        times = 1
        while True:
            try:
                return self._act(rows, record)
            except Exception as error:
                found = explain(error, error, self._settings.sink)
                failed_at = failed_at or time.monotonic()
                retry, waited = RETRIES[found.trouble].epoch, time.monotonic() - failed_at
                patience_seconds = self._patience.bound_seconds
                if not retry.goes_on(times=times, seconds=waited, patience_seconds=patience_seconds):
                    raise
                say(f"epoch {record.epoch} is repeated: {found.primary}")
                self._account.holders.clear()
                time.sleep(retry.pause_seconds)
                self._guard.check()
                times += 1

    def _act(self, rows: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Run the tasks, and once more where some of their rows did not get through.

        Not behind a task that ends the driver: to open its writer again would fence the newer start that
        has fenced it.
        """
        plan = self._settings.plan(record, self._account)
        while True:
            reports = self._tasks.run(rows, plan)
            if not self._tasks.must_write_again(reports):
                return reports
            self._raise_if_stopped(reports)
            self._guard.check()
            self._target.rollback_epoch(_tokens(reports))
            say(f"epoch {plan.record.epoch} is written again: it has larger rows than there was room for")
            plan = plan.repeated()

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


def _tokens(reports: Iterable[TaskReport]) -> list[Token]:
    """Return what tasks have staged."""
    return [Token(report.writer, report.staged, report.rows) for report in reports if report.staged]
