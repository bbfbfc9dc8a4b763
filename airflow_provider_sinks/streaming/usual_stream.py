"""What a driver asks of Spark in its first seconds: a stream, a query over each batch, Python behind it.

A program for ``spark-submit``, which keeps the classes that it takes (:mod:`..hooks.class_archive`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_BATCHES = 3
_QUERY = """
    SELECT value, upper(name) AS name, j.a FROM
        (SELECT *, from_json(concat('{"a": ', value, '}'), 'a INT') AS j FROM source)
        LEFT JOIN (VALUES (1, 'one'), (2, 'two')) AS users (id, name) ON value = id WHERE value > 0"""


def write(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Take the rows as a writer does."""
    yield from batches


def main() -> None:
    """Run a few batches."""
    spark = SparkSession.builder.getOrCreate()

    def run(batch: DataFrame, _number: int) -> None:
        batch.createOrReplaceTempView("source")
        session = batch.sparkSession
        session.sql(_QUERY).coalesce(1).mapInArrow(write, "value LONG, name STRING, a INT").collect()
        session.sql(_QUERY).toArrow()

    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    query = rows.writeStream.foreachBatch(run).trigger(processingTime="100 milliseconds").start()
    while not (progress := query.lastProgress) or progress["batchId"] < _BATCHES:
        if (error := query.exception()) is not None:
            raise error
        time.sleep(0.05)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
