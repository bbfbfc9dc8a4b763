"""How many rows cross from Spark to Python at once, so that nobody's memory is filled by a batch.

Spark bounds a batch by rows and by bytes. For the bytes it asks each column for its size after each row,
unless the bound is the largest integer. So it is told not to ask where rows are known to be small. A batch
has so few rows that it would have :data:`BATCH_BYTES`, as with Spark's check, were each as large as allowed.

What is known is how large the rows were so far, and that says nothing for sure. So a row that is larger than
allowed does not cross: its task ends without a commit, and the epoch is written again with Spark's check, as
one of which a part was committed. The first epoch of a run has the check, for nothing is known. Rows are
allowed to be twice as large as the largest so far, so this settles after few epochs; rows that are large are
left to Spark's check for good, which costs little beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from airflow_provider_sinks.streaming import large_rows
from airflow_provider_sinks.streaming.arriving_rows import NUMBERED
from airflow_provider_sinks.streaming.driver_share import ROW_BYTES_MAX, Room
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport

BATCH_BYTES = 16 * 1024 * 1024
"""Spark's 64 MB are too much for two tasks beside each other in a driver of 1 GB: each batch exists twice."""
HERE_BYTES = 4 * 1024 * 1024
"""Batches of rows that the driver writes. Spark's stream is buffered: the end of what a task wrote comes when
another one writes behind it, or when the job ends."""
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
CHECKED = {ROWS: "20000", BYTES: f"{BATCH_BYTES}b"}
"""How a session begins, unless its user has set one of them."""

_UNCHECKED_BYTES = str(2**31 - 1)
_ROWS_MAX = 8_192
_ROWS_MIN = 1_024


class ArrowBatches:
    """What is known of a run's rows. Kept by the driver."""

    def __init__(self) -> None:
        self._largest_row_bytes: int | None = None
        self._must_check = False
        self._is_ours: bool | None = None

    def bounded(self, rows: DataFrame) -> DataFrame:
        """Tell Spark how to cut batches, and return the rows as they are to cross."""
        batch_rows = self._unchecked_rows()
        batch_rows = batch_rows if batch_rows and large_rows.are_plain(rows) else 0
        is_told = self._tell(rows, batch_rows)
        return large_rows.marked(rows, BATCH_BYTES // batch_rows) if is_told and batch_rows else rows

    def here(self, rows: DataFrame, room: Room) -> DataFrame | None:
        """Tell Spark how to cut the batches of rows that come to the driver; return them marked and numbered.

        :returns: ``None`` for many rows whose sizes are dear to tell: executors are then the cheaper way.
        """
        is_plain = large_rows.are_plain(rows)
        if not is_plain and room.row_bytes < ROW_BYTES_MAX:
            return None
        batch_rows = min(_ROWS_MAX, HERE_BYTES // room.row_bytes)
        self._tell(rows, batch_rows if is_plain else 0)
        return large_rows.marked(rows, room.row_bytes, room.rows_each, behind=[NUMBERED])

    def learn(self, reports: Sequence[TaskReport]) -> bool:
        """Learn how large rows are; return whether some did not cross: the epoch must be written again."""
        if any(report.rows or report.dead or report.largest_row_bytes for report in reports):
            seen = (report.largest_row_bytes for report in reports)
            self._largest_row_bytes = max(self._largest_row_bytes or 1, *seen)
        self._must_check = any(report.outcome == Outcome.LARGE_ROWS for report in reports)
        return self._must_check

    def _tell(self, rows: DataFrame, batch_rows: int) -> bool:
        """Tell Spark how many rows a batch may have, 0 for its own check; not where the user has told it."""
        conf = rows.sparkSession.conf
        if self._is_ours is None:
            self._is_ours = all(conf.get(name) == value for name, value in CHECKED.items())
        if self._is_ours:
            told = {ROWS: str(batch_rows), BYTES: _UNCHECKED_BYTES} if batch_rows else CHECKED
            for name, value in told.items():
                conf.set(name, value)
        return self._is_ours

    def _unchecked_rows(self) -> int:
        """Return how many rows a batch may have without a check of its bytes; 0 where it needs one."""
        if self._must_check or self._largest_row_bytes is None:
            return 0
        fitting = large_rows.in_steps(min(_ROWS_MAX, BATCH_BYTES // (2 * self._largest_row_bytes)))
        return fitting if fitting >= _ROWS_MIN else 0
