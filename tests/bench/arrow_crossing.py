"""What a row costs on its way from Spark to Python: processor time of the task's thread in the JVM, in turn.

python -m tests.bench.arrow_crossing

One JVM, one task, columns as a Kafka writer gets them, with values of 100 bytes. Arms: with Spark's check of
the bytes of a batch, as a run begins; without it and with the mark for large rows, as it goes on; and that
with three columns instead of five, to see what fewer columns would save. Python only counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.streaming.arrow_batches import BYTES, CHECKED, ArrowBatches
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport

ROWS = 800_000
ROUNDS = 7
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
    time.sleep(0.5)  # Spark writes its figures down a little later
    newest: Any = max(_stages(session), key=lambda stage: stage.stageId())
    return float(newest.executorCpuTime()) / 1000 / ROWS


def _stages(session: SparkSession) -> list[Any]:
    context: Any = session.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    found = (
        context._jsc.sc()
        .statusStore()
        .stageList(None, False, False, none, context._jvm.java.util.ArrayList())
    )
    return [found.apply(number) for number in range(found.size())]


def main() -> None:
    """Run the arms in turn, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in {
        **CHECKED,
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{ROWS:,} rows, {ROUNDS} rounds behind two that are not counted; load of the machine: {load}\n")
    costs: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS + 2):
        found = arms(session)
        for name in list(found)[:: 1 if number % 2 else -1]:
            spent = cost(session, *found[name])
            if number > 1:
                costs[name].append(spent)
    print("| rows cross with | µs per row, medians (min to max) |\n|---|---|")
    for name, spent_all in costs.items():
        print(f"| {name} | {median(spent_all):.2f} ({min(spent_all):.2f} to {max(spent_all):.2f}) |")
    session.stop()


if __name__ == "__main__":
    main()
