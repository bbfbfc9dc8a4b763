"""What a row costs on its way from Spark to Python: processor time of the task's thread in the JVM, in turn.

python -m tests.bench.arrow_crossing

One JVM, one task, columns as a Kafka writer gets them, with values of 100 bytes. Arms: with Spark's check of
the bytes of a batch, as a run begins; without it and with the mark for large rows, as it goes on; and that
with three columns instead of five, to see what fewer columns would save. Python only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.streaming.arrow_batches import BYTES, CHECKED, ArrowBatches
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from tests.bench.task_time import one_task_at_a_time, print_costs, task_us

ROWS = 800_000
_COLUMNS = (
    "CAST(0 AS INT) AS __sinks_partition",
    "id AS __sinks_offset",
    "CAST(NULL AS STRING) AS __sinks_error",
    "CAST(CAST(id AS STRING) AS BINARY) AS __sinks_key",
    "CAST(repeat(CAST(id % 10 AS STRING), 100) AS BINARY) AS __sinks_value",
)
_FEWER = ("__sinks_offset", "__sinks_key", "__sinks_value")


def count(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Take the rows, and say how many they were."""
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def arms(session: SparkSession) -> dict[str, tuple[ArrowBatches, DataFrame]]:
    """Return what is known of the rows in each arm, and the rows."""
    rows = session.range(0, ROWS, 1, 1).selectExpr(*_COLUMNS)
    known = ArrowBatches()
    known.learn([TaskReport("p0", Outcome.COMMITTED, largest_row_bytes=106)])
    return {
        "five columns, with Spark's check": (ArrowBatches(), rows),
        "five columns, without it, with the mark": (known, rows),
        "three columns, without it, with the mark": (known, rows.select(*_FEWER)),
    }


def cost(session: SparkSession, batches: ArrowBatches, rows: DataFrame) -> float:
    """Return µs of processor time per row."""
    for name, value in CHECKED.items():  # what another arm has left is none of a user's settings
        session.conf.set(name, value)
    crossing = batches.bounded(rows)
    is_checked = session.conf.get(BYTES) == CHECKED[BYTES]
    if is_checked != (crossing is rows):
        raise SystemExit("an arm does not measure what it says")
    (counted,) = crossing.mapInArrow(count, "rows long").collect()
    if counted.rows != ROWS:
        raise SystemExit(f"{ROWS:,} rows were sent, and {counted.rows:,} came")
    return task_us(session) / ROWS


def main() -> None:
    """Run the arms in turn, and print a table."""
    with one_task_at_a_time(CHECKED) as session:

        def arms_of() -> dict[str, Callable[[], float]]:
            return {name: partial(cost, session, *arm) for name, arm in arms(session).items()}

        print_costs("rows cross with", ROWS, arms_of)


if __name__ == "__main__":
    main()
