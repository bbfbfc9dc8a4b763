"""The one action of an epoch whose rows Spark's own writer writes: ask it once, and tell what it wrote.

It is asked again only where it met a schema of the source that had not been asked for. What an attempt that
failed has left, only Spark knows; the next start asks it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.single_task import is_committed
from airflow_provider_sinks.streaming.source import Offsets
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport


class EngineAction:
    """Has the rows of one epoch after another written.

    :param sink: the sink's name.
    :param account: what is committed so far.
    :param target: the sink's target.
    :param guard: looks at the topics and the output behind each epoch.
    :param to_rows: turns a micro-batch and its range into what Spark's writer takes.
    :param learns: told why an attempt failed; says whether more is known now, and it is worth another.
    """

    def __init__(
        self,
        sink: str,
        *,
        account: Account,
        target: SinkConnector,
        guard: Guard,
        to_rows: Callable[[DataFrame, Offsets, Offsets], DataFrame],
        learns: Callable[[BaseException], bool],
    ) -> None:
        self._sink = sink
        self._account = account
        self._target = target
        self._guard = guard
        self._to_rows = to_rows
        self._learns = learns

    def run(self, batch: DataFrame, record: ProgressRecord) -> list[TaskReport]:
        """Write the rows, unless the epoch is recorded."""
        total = self._account.totals.get(SINGLE_WRITER, (0, 0))[0]
        if is_committed(self._sink, record, self._account.newest, self._account.positions):
            return [TaskReport(SINGLE_WRITER, Outcome.SKIPPED, rows_total=total)]
        written = self._written(batch, record)
        self._guard.check()
        return [TaskReport(SINGLE_WRITER, Outcome.COMMITTED, written, rows_total=total + written)]

    def _written(self, batch: DataFrame, record: ProgressRecord) -> int:
        """Have the rows written; each further attempt knows one schema more, so it ends."""
        while True:
            rows = self._to_rows(batch, dict(record.from_), dict(record.to))
            try:
                return self._target.write_frame(rows, self._account.whole_record(record, ()))
            except Exception as error:
                if not self._learns(error):
                    raise
                say(f"epoch {record.epoch} is repeated: it met a schema that had not been asked for")
