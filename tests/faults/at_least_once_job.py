"""The control: the same flow with Spark's own Kafka sink, which is at-least-once.

    spark-submit ... at_least_once_job.py <bootstrap> <source> <target> <checkpoint> <pause> <stop file>

Run by the same harness as our job; the checker must find its duplicates. It ends when the stop file is there
and nothing is left to read.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main(*arguments: str) -> None:
    """Copy rows until told to stop."""
    bootstrap, source, target, checkpoint, pause, stop = arguments
    spark = SparkSession.builder.appName("at least once").getOrCreate()
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "900")
        .load()
        .selectExpr("key", "value", f"{pause} AS pause")
        .where("pause IS NOT NULL")
    )
    writer = rows.select("key", "value").writeStream.format("kafka").option("topic", target)
    writer = writer.option("kafka.bootstrap.servers", bootstrap).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="50 milliseconds").start()
    while not Path(stop).exists():
        if query.awaitTermination(1):
            return
    query.processAllAvailable()
    time.sleep(0.1)
    query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
