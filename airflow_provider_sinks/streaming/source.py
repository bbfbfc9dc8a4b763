"""The Kafka source: how it is read, and the offsets that Spark has written down about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.core.spec.source import KafkaSource

Offsets = dict[int, int]


def stream_source(
    spark: SparkSession,
    source: KafkaSource,
    options: Mapping[str, str],
    positions: Mapping[int, int],
    records_max: int,
    *,
    with_headers: bool = False,
) -> DataFrame:
    """Return the source as a stream of Kafka records.

    :param options: by which Spark reaches it.
    :param positions: where to start, for **every** source partition; Spark ignores it when the checkpoint
        has offsets.
    :param records_max: how many an epoch may hold.
    :param with_headers: read the headers of records, too, for what is set aside.
    """
    starting = json.dumps({source.topic: {str(partition): at for partition, at in positions.items()}})
    reader = _options(spark.readStream.format("kafka"), source, options)
    frame: DataFrame = (
        reader.option("subscribe", source.topic)
        .option("startingOffsets", starting)
        .option("maxOffsetsPerTrigger", str(records_max))
        .option("includeHeaders", str(with_headers).lower())
        .load()
    )
    return frame


def read_range(
    spark: SparkSession,
    source: KafkaSource,
    options: Mapping[str, str],
    start: Offsets,
    end: Offsets,
    *,
    with_headers: bool = False,
) -> DataFrame:
    """Return the records of one epoch's range once more, as a batch.

    :param options: by which Spark reaches it.
    :param start: first offset of each source partition.
    :param end: offset after the last one.
    :param with_headers: read the headers of records, too.
    """
    reader = _options(spark.read.format("kafka"), source, options)
    frame: DataFrame = (
        reader.option("subscribe", source.topic)
        .option("startingOffsets", json.dumps({source.topic: {str(p): o for p, o in start.items()}}))
        .option("endingOffsets", json.dumps({source.topic: {str(p): o for p, o in end.items()}}))
        .option("includeHeaders", str(with_headers).lower())
        .load()
    )
    return frame


def _options(reader: Any, source: KafkaSource, options: Mapping[str, str]) -> Any:
    for key, value in options.items():
        reader = reader.option(key, value)
    for key, value in source.options.items():
        reader = reader.option(key, value)
    return (
        reader.option("kafka.isolation.level", "read_committed")
        .option("kafka.allow.auto.create.topics", "false")
        .option("failOnDataLoss", "true")
    )


@dataclass(frozen=True)
class CheckpointLog:
    """What Spark wrote into a checkpoint; read through Hadoop's file system, so any URI works.

    :param spark: the session of this driver.
    :param folder: the checkpoint's folder or URI.
    :param topic: the source topic.
    """

    spark: SparkSession
    folder: str
    topic: str

    def newest(self, log: str) -> int | None:
        """Return the newest batch in ``offsets`` or ``commits``, or ``None`` when there is none."""
        path = self._path(log)
        files = path.getFileSystem(self._hadoop)
        if not files.exists(path):
            return None
        names = [entry.getPath().getName() for entry in files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def offsets(self, batch: int) -> Offsets:
        """Return the end offsets of a batch, by source partition: written before the batch runs."""
        lines = self._read(f"offsets/{batch}").splitlines()
        return self._parse(lines[2])

    def start_offsets(self, batch: int) -> Offsets:
        """Return the first offsets of a batch: the end of the one before, or where the checkpoint began."""
        if batch > 0:
            return self.offsets(batch - 1)
        text = self._read("sources/0/0")
        return self._parse(text[text.index("{") :])

    def _parse(self, text: str) -> Offsets:
        return {int(partition): int(offset) for partition, offset in json.loads(text)[self.topic].items()}

    def _read(self, name: str) -> str:
        path = self._path(name)
        stream = path.getFileSystem(self._hadoop).open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.folder}/{name}")

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm  # noqa: SLF001  the way to Hadoop's file systems

    @property
    def _hadoop(self) -> Any:
        return self.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  likewise
