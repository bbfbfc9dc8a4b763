"""The Spark application of one arm. All arms report through the same listener, so they are timed alike.

spark-submit app.py ours <progress file> <launch directory>
spark-submit app.py jdbc <progress file> <bootstrap> <source> <table> <rows per epoch> <checkpoint> <options>
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from tests.bench.progress import Epoch
from tests.bench.tables import COLUMNS


class ToFile(StreamingQueryListener):
    """Writes each epoch down."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Nothing to write yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Write the epoch that ended."""
        progress = event.progress
        seconds = progress.durationMs["triggerExecution"] / 1000
        Epoch(progress.numInputRows, seconds, tree_cpu_seconds()).append_to(self._file)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Idle triggers are no epochs."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  Spark's name
        """The last epoch is written already."""


def tree_cpu_seconds() -> float:
    """Return the processor time of the JVM, this driver and all Python workers, ended ones too."""
    jvm = psutil.Process(os.getppid())
    total = 0.0
    for process in [jvm, *jvm.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def run_ours(file: Path, launch: str) -> int:
    """Run our job as ``sink_job.py`` does, with the listener in its session."""
    from airflow_provider_sinks.core.launch.files import LaunchFiles
    from airflow_provider_sinks.streaming import job
    from airflow_provider_sinks.streaming.session import open_session

    def open_and_listen(*given: Any) -> SparkSession:
        spark = open_session(*given)
        spark.streams.addListener(ToFile(file))
        return spark

    setattr(job, "open_session", open_and_listen)  # noqa: B010  mypy takes the plain form for an error
    return int(job.run(LaunchFiles(Path(launch))))


def run_jdbc(file: Path, *arguments: str) -> int:
    """Append to a table as most do: by Spark's JDBC writer in ``foreachBatch``, which is at-least-once."""
    bootstrap, source, table, rows, checkpoint, options_file = arguments
    options = json.loads(Path(options_file).read_text())
    spark = SparkSession.builder.appName("spark's jdbc writer").getOrCreate()
    spark.streams.addListener(ToFile(file))

    def append(epoch: DataFrame, _number: int) -> None:
        epoch.write.format("jdbc").options(**options).option("dbtable", table).mode("append").save()

    records = read(spark, bootstrap, source, rows).selectExpr("CAST(value AS STRING) AS value")
    writer = records.selectExpr(*COLUMNS).writeStream.foreachBatch(append)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    return 0


def read(spark: SparkSession, bootstrap: str, source: str, rows_per_epoch: str) -> DataFrame:
    """Return the records of a topic, as Spark's own source has them."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows_per_epoch)
        .load()
    )


def main() -> None:
    """Run the arm that the arguments name."""
    arm, file, *arguments = sys.argv[1:]
    arms: Mapping[str, Callable[..., int]] = {"ours": run_ours, "jdbc": run_jdbc}
    code = arms[arm](Path(file), *arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    SparkSession.getActiveSession()
    os._exit(code)


if __name__ == "__main__":
    main()
