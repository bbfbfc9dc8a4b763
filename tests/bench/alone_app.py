"""The Spark application of one arm of the write alone: rows that Spark makes, without any source.

spark-submit alone_app.py ours <progress file> <launch directory> <what is made>
spark-submit alone_app.py jdbc <progress file> <options> <table> <what is made>

What is made: rows per epoch, epochs, partitions, bytes of a row, epochs before those that count.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import registry, rows
from airflow_provider_sinks.connectors.base import Run, SinkConnector
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.progress.record import ProgressRecord, partition_writer
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import transform
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_share import DriverShare
from airflow_provider_sinks.streaming.epoch_action import EpochAction
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_tasks import RowTasks
from airflow_provider_sinks.streaming.epochs import Epochs
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.session import open_session
from tests.bench.app import tree_cpu_seconds
from tests.bench.progress import Epoch

WARM_UP_ROWS = 400
"""Of an epoch that does not count: it is there for the code that runs once in each, which is compiled."""
_FIXED_BYTES = 28
_FILLING = "abcdefghijklmnopqrstuvwxyz " * 40


@dataclass(frozen=True)
class Made:
    """What rows are made.

    :param size_bytes: of a row's columns as text, about as :func:`.tables.values` has them.
    :param warm_up: epochs of few rows, before those that count.
    """

    epoch_rows: int
    epochs: int
    partitions: int
    size_bytes: int
    warm_up: int

    @property
    def arguments(self) -> list[str]:
        """For the application."""
        return [str(n) for n in astuple(self)]

    @property
    def records(self) -> int:
        """How many rows are there in the end."""
        return sum(self.ends(self.warm_up + self.epochs).values())

    def task_rows(self, number: int) -> int:
        """Return how many rows a partition has in an epoch."""
        return (WARM_UP_ROWS if number < self.warm_up else self.epoch_rows) // self.partitions

    def ends(self, number: int) -> dict[int, int]:
        """Return how many rows of each partition come before an epoch."""
        few = min(number, self.warm_up)
        rows_each = few * self.task_rows(0) + (number - few) * self.task_rows(self.warm_up)
        return dict.fromkeys(range(self.partitions), rows_each)

    @property
    def filling(self) -> str:
        """What makes a row as large as it is to be."""
        return _FILLING[: self.size_bytes - _FIXED_BYTES - 9]

    def frame(self, spark: SparkSession, number: int) -> DataFrame:
        """Return the rows of an epoch: the columns of :data:`.tables.COLUMNS`, at little cost."""
        return spark.range(0, self.task_rows(number) * self.partitions, 1, self.partitions).selectExpr(
            "id",
            "concat('user-', lpad(CAST(id % 1000000 AS STRING), 6, '0')) AS userid",
            "CAST(id % 9999 AS DOUBLE) AS price",
            f"concat(lpad(CAST(id AS STRING), 9, '0'), '{self.filling}') AS payload",
        )

    def time(
        self, file: Path, write: Callable[[int], None], cpu_seconds: Callable[[], float] = tree_cpu_seconds
    ) -> None:
        """Write all epochs, and each one down that counts.

        :param cpu_seconds: returns the processor time by now.
        """
        for number in range(self.warm_up):
            write(number)
        for number in range(self.warm_up, self.warm_up + self.epochs):
            started = time.monotonic()
            write(number)
            took = time.monotonic() - started
            Epoch(self.task_rows(number) * self.partitions, took, cpu_seconds()).append_to(file)


def run_jdbc(file: Path, options_file: str, table: str, made: Made) -> None:
    """Append by Spark's JDBC writer."""
    options = json.loads(Path(options_file).read_text())
    spark = SparkSession.builder.appName("spark's jdbc writer").getOrCreate()

    def append(number: int) -> None:
        writer = made.frame(spark, number).write.format("jdbc").options(**options)
        writer.option("dbtable", table).mode("append").save()

    made.time(file, append)


def run_ours(file: Path, launch: str, made: Made) -> None:
    """Write as a sink does: every epoch by :class:`.epochs.Epochs`, fenced, looked at and recorded."""
    files = LaunchFiles(Path(launch))
    spec = SinkSpec.parse(files.read().spec)
    connections = ResolvedConnections.from_json(files.take_connections())
    spark = open_session(spec.name, registry.kind(spec).writer_module)
    target = registry.connect(spec, connections)
    target.expect(transform.with_source_columns(made.frame(spark, 0)))
    share = DriverShare.of(spark, spec)
    epochs = _epochs(spec, target, _announced(spec, target, made), made, share)
    made.time(file, lambda number: epochs(made.frame(spark, number), number))


def _announced(spec: SinkSpec, target: SinkConnector, made: Made) -> ProgressRecord:
    """Fence, and announce a run."""
    source = _source(spec, made)
    run = Run(spec.name, str(uuid.uuid4()), source.name)
    writers = tuple(map(partition_writer, range(made.partitions)))
    while not target.open(run, writers, target.observe(source)):
        continue
    target.ensure(spec.creations()[Role.PROGRESS])
    nothing = dict.fromkeys(range(made.partitions), 0)
    identities = target.observe(source).identities()
    record = ProgressRecord(1, "bench", run.id, 0, nothing, nothing, identities, writers=writers)
    target.announce(record)
    return record


def _source(spec: SinkSpec, made: Made) -> ResourceFacts:
    """Return what stands for a source."""
    return ResourceFacts(spec.source_topic, Existence.PRESENT, "none", "none", partitions=made.partitions)


def _epochs(
    spec: SinkSpec, target: SinkConnector, announced: ProgressRecord, made: Made, share: DriverShare
) -> Epochs:
    """Return what writes epochs, each of the next rows of every partition; there is no source to look at."""
    patience = Patience(timedelta(minutes=5))

    def look() -> Mapping[Role, ResourceFacts]:
        return {Role.SOURCE: _source(spec, made), **target.identify()}

    settings = EpochSettings.of(spec, target, driver=share, demand_source=lambda _: None)
    account = Account(announced, dict(announced.to), {}, set(announced.writers))
    guard = Guard(announced.identities, look, target.demand_in_force, patience, target.service)
    parts: dict[str, Any] = {"account": account, "target": target, "guard": guard, "patience": patience}

    def project(frame: DataFrame, begin: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
        task_rows = end[0] - begin[0]
        offset = sql.col("id") % task_rows + _told(begin[0])
        place = {rows.PARTITION: (sql.col("id") / task_rows).cast("int"), rows.OFFSET: offset}
        return target.project(transform.with_source_columns(frame).withColumns(place))

    log: Any = SimpleNamespace(
        folder="none", start_offsets=made.ends, offsets=lambda number: made.ends(number + 1)
    )
    source_log: Any = SimpleNamespace(leader_epochs=lambda *_: {})
    action = EpochAction(settings, **parts, tasks=RowTasks(settings, project))
    return Epochs(settings, **parts, log=log, source_log=source_log, action=action, finished=lambda _: None)


def _told(number: int) -> Column:
    """Return a number that is another one in each epoch, as a value that Spark does not write into its code.

    What it writes would be new code for each epoch, compiled anew. Of a source it is a column.
    """
    text = sql.concat(sql.lit(str(number)), sql.substring("userid", 1, 0))
    return text.cast("bigint")


def main() -> None:
    """Run the arm that the arguments name."""
    arm, file, place, *given = sys.argv[1:]
    numbers = Made(*map(int, given[-5:]))
    if arm == "ours":
        run_ours(Path(file), place, numbers)
    else:
        run_jdbc(Path(file), place, given[0], numbers)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
