"""Which epochs are small, so that the driver writes them itself (:mod:`.small_epochs`).

An epoch is small if it has few records. Where the driver is all there is of Spark, its rows are in this
process tree anyway, and it is small as long as they fit into a part of the JVM's memory: such a driver needs
no Python worker at all.

Few records can still be many bytes, and only the rows tell. So a row of more bytes than there is room for
does not come to the driver: it comes as a mark, its writer commits nothing, and the epoch is written again by
the executors, which read their rows one batch after another. They write those behind it too, until one of
them would have fitted. A record may lead to many rows where lookups have a key in several rows; what goes
beyond :attr:`Room.rows_each` does not come either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec
from airflow_provider_sinks.streaming import held_writers
from airflow_provider_sinks.streaming.large_rows import in_steps
from airflow_provider_sinks.streaming.task_report import TaskReport

ROWS_MAX = 2_000
"""An epoch of at most so many source records is small; records have a size limit of their own in Kafka."""
SETTING = "spark.sinks.driverEpochRows"
"""The Spark setting that says instead how many records a small epoch has, executors or not; 0: none is."""
ROW_BYTES_MAX = 16 * 1024
"""What the texts and bytes of a row may have at most in an epoch of few records."""
ROW_BYTES_MIN = 128
"""An epoch of so many records that a row could not even have so many bytes is not tried."""
BYTES_MAX = 128 * 1024 * 1024
_OF_MEMORY = 16
"""Where there are no executors, the rows of an epoch may have this part of the JVM's memory: it holds
all of them before they come, some of them more than once, and this process holds them again."""
_MULTIPLIED = 2
"""How many rows a record may lead to, over all records of a task, where it may lead to several."""


@dataclass(frozen=True)
class Room:
    """What may come to the driver of one epoch.

    :param row_bytes: the texts and bytes of a row.
    :param rows_each: rows of a task; ``None`` where a record never leads to several.
    """

    row_bytes: int
    rows_each: int | None = None

    def would_hold(self, reports: Iterable[TaskReport]) -> bool:
        """Return whether there would have been room for an epoch that ran on executors."""
        return all(
            report.largest_row_bytes <= self.row_bytes
            and (self.rows_each is None or report.rows + report.dead <= self.rows_each)
            for report in reports
        )


@dataclass(frozen=True)
class DriverShare:
    """Which epochs the driver writes itself.

    :param records_max: those of at most so many source records; 0: none.
    :param bytes_max: and those whose rows have at most so many bytes, where there are no executors; else 0.
    :param may_multiply: a record may lead to several rows.
    :param is_alone: there are no executors, and the user does not leave every epoch to workers.
    """

    records_max: int
    bytes_max: int = 0
    may_multiply: bool = False
    is_alone: bool = False

    @classmethod
    def of(cls, spark: SparkSession, spec: SinkSpec) -> DriverShare:
        """Return the share of a sink's driver: few records in must mean few rows out.

        That does not hold where windows close: an epoch without a record may give all that was ever counted.
        Nor where a query makes many rows of one: 2,000 records of 500 KB may be ten million rows.
        """
        closes_windows = not spec.shape.row_wise and spec.stream_mode is OutputMode.APPEND
        told = spark.conf.get(SETTING, None)
        records_max = ROWS_MAX if told is None else int(told or 0)
        if closes_windows or spec.shape.generates or not records_max:
            return cls(0)
        is_alone = has_no_executors(spark)
        has_room = is_alone and told is None and spec.shape.row_wise
        return cls(records_max, _room_bytes(spark) if has_room else 0, spec.shape.may_multiply, is_alone)

    def has_few(self, begin: Mapping[int, int], end: Mapping[int, int]) -> bool:
        """Whether a range has few records, and of few enough source partitions to keep their writers."""
        sizes = _sizes(begin, end)
        return sum(sizes) <= self.records_max and len(sizes) <= held_writers.most()

    def room(self, begin: Mapping[int, int], end: Mapping[int, int], *, single: bool = False) -> Room | None:
        """Return the room for the rows of a range; ``None`` where executors write them.

        :param single: one task has all of them.
        """
        sizes = _sizes(begin, end)
        records = sum(sizes)
        row_bytes = ROW_BYTES_MAX
        if not self.has_few(begin, end):
            row_bytes = in_steps(self.bytes_max // max(1, records))
        if not self.records_max or row_bytes < ROW_BYTES_MIN:
            return None
        tasks = 1 if single else max(1, len(sizes))
        rows_each = max(ROWS_MAX, in_steps(_MULTIPLIED * records // tasks))
        return Room(row_bytes, rows_each if self.may_multiply else None)


def has_no_executors(spark: SparkSession) -> bool:
    """Whether this process is all there is of Spark."""
    return str(spark.sparkContext.master).partition("[")[0] == "local"


def _sizes(begin: Mapping[int, int], end: Mapping[int, int]) -> list[int]:
    """Return how many records each partition of a range has that has some."""
    return [at - begin.get(partition, 0) for partition, at in end.items() if at > begin.get(partition, 0)]


def _room_bytes(spark: SparkSession) -> int:
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no word for it
    conf: Any = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001  likewise
    memory_bytes = int(jvm.java.lang.Runtime.getRuntime().maxMemory())
    result_bytes = int(conf.getSizeAsBytes("spark.driver.maxResultSize", "1g")) or memory_bytes
    return min(BYTES_MAX, memory_bytes // _OF_MEMORY, result_bytes // 2)
