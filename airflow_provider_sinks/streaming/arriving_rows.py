"""Rows that come to the driver while Spark still computes others.

Spark writes the result of a task into a stream as one piece, when the task has ended, and the results of its
tasks one behind the other, in the order in which they end. So the rows of a task are whole as soon as some of
another one come. Those of the last one are whole when the job has ended well, which is told behind all rows:
a stream that breaks off, even between two batches, or a job that fails, never looks like the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Condition
from typing import Any

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import _load_from_socket

from airflow_provider_sinks.streaming.measured_input import unmarked

NUMBERING = "spark_partition_id"
"""The function that gives the number of a row's task; no query may call it."""
_TASK = "__sinks_task"
NUMBERED = f"{NUMBERING}() AS {_TASK}"
"""The last column of rows that are to come with the numbers of their tasks."""


def as_tasks_end(frame: DataFrame) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Run a job and yield its rows, each batch with the number of its task.

    It is what ``DataFrame.toArrow`` does, which makes a list of it. Spark's job waits for whoever reads, so
    it is to be read to the end.

    :param frame: with :data:`NUMBERED` behind its columns.
    :raises PySparkException: the job failed; whatever was yielded by then is of tasks that had ended.
    :raises EOFError: the stream broke off; likewise, but of the last task there may be more rows.
    """
    port, secret, server = frame._jdf.collectAsArrowToPython()  # noqa: SLF001  PySpark has no word for it
    reader = ArrowCollectSerializer()  # type: ignore[no-untyped-call]
    try:
        yield from by_task(_load_from_socket((port, secret), reader))
    finally:
        with unwrap_spark_exception():
            server.getResult()


def by_task(items: Iterable[Any]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches with the numbers of their tasks.

    :param items: as Spark's own reader gives them: batches, and last the order of them.
    """
    for item in items:
        if isinstance(item, pa.RecordBatch) and item.num_rows:
            yield item.column(_TASK)[0].as_py(), item.select(item.schema.names[:-1])


class RowsMissingError(Exception):
    """Some rows of a writer do not come; why is told by whoever reads them."""


class ArrivingRows:
    """The rows of one writer; whoever iterates, anew for each try, waits for those that are missing."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._is_whole: bool | None = None
        self._changed = Condition()

    @property
    def is_whole(self) -> bool:
        """Whether all of them have come."""
        return self._is_whole is True

    def put(self, batch: pa.RecordBatch) -> None:
        """Add some."""
        with self._changed:
            self._batches.append(batch)
            self._changed.notify_all()

    def end(self, *, is_whole: bool = True) -> None:
        """Say that there are no more. What was whole stays so."""
        with self._changed:
            self._is_whole = self.is_whole or is_whole
            self._changed.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield them all, without the marks of large ones.

        :raises LargeRowError: at the first batch with a row that was left out.
        :raises RowsMissingError: behind the last one that came, if there should be more.
        """
        number = 0
        while self._has(number):
            yield unmarked(self._batches[number])
            number += 1

    def _has(self, number: int) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: number < len(self._batches) or self._is_whole is not None)
            if number == len(self._batches) and not self._is_whole:
                raise RowsMissingError
            return number < len(self._batches)
