"""The streaming query of a sink: what Spark is asked to run, and what becomes of each micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import transform
from airflow_provider_sinks.streaming.analysis import misfit
from airflow_provider_sinks.streaming.checkpoint_files import write_without_processes
from airflow_provider_sinks.streaming.lookups import Lookups
from airflow_provider_sinks.streaming.replayed_letters import selected
from airflow_provider_sinks.streaming.source import Offsets, read_range, stream_source
from airflow_provider_sinks.streaming.start import Started
from airflow_provider_sinks.streaming.written_schemas import WrittenSchemas


class SinkQuery:
    """The plan of one sink, over the stream and over the records of one epoch.

    :param source: the options by which Spark reaches the source; they hold secrets.
    :param project: the target's own encoding of the query's columns.
    :param written: by what the source's records were written, where a registry knows.
    """

    def __init__(
        self,
        spec: SinkSpec,
        lookups: Lookups,
        source: Mapping[str, str],
        project: Callable[[DataFrame], DataFrame],
        written: WrittenSchemas | None = None,
    ) -> None:
        self._written = written
        self._columns: LaidColumns | None = None
        self._spec = spec
        self._lookups = lookups
        self._source = source
        self._project = project

    def start(
        self, spark: SparkSession, started: Started, epochs: Callable[[DataFrame, int], None], records: int
    ) -> StreamingQuery:
        """Start the query where its progress says, or where its checkpoint does.

        :param epochs: what ``foreachBatch`` calls.
        :param records: of the source that an epoch may hold.
        """
        spec = self._spec
        read = stream_source(
            spark,
            spec.source.kafka,
            self._source,
            started.account.positions,
            records,
            with_headers=spec.reads_headers and spec.shape.row_wise,
        )
        frame = read if spec.shape.row_wise else self._stateful(spark, read)
        write_without_processes(spark, started.checkpoint)
        writer = frame.writeStream.foreachBatch(epochs).outputMode(spec.stream_mode.value)
        writer = writer.option("checkpointLocation", started.checkpoint).queryName(spec.name)
        if spec.trigger.every is None:
            return writer.trigger(availableNow=True).start()
        every = f"{int(spec.trigger.every.total_seconds() * 1000)} milliseconds"
        return writer.trigger(processingTime=every).start()

    def rows(self, batch: DataFrame, begin: Offsets, end: Offsets) -> DataFrame:
        """Return the columns of a writer for one micro-batch.

        :param batch: its records, or its rows where Spark keeps state for the plan; then what does not parse
            is read from the source again.
        :raises ConfigurationError: the SQL does not fit any more.
        """
        spec = self._spec
        if not spec.shape.row_wise:
            records = read_range(
                batch.sparkSession,
                spec.source.kafka,
                self._source,
                begin,
                end,
                with_headers=spec.reads_headers,
            )
            dead = transform.dead_letters(transform.parse(records, spec.source.kafka, self._written))
            return self._project(transform.with_source_columns(batch, dead))
        session = batch.sparkSession
        self._lookups.refresh(session)
        taken = batch if spec.replay is None else selected(batch, spec.replay)
        parsed = self._parse(taken)
        parsed.createOrReplaceTempView(transform.SOURCE_VIEW)
        try:
            return self._project(session.sql(spec.job_sql))
        except AnalysisException as error:  # it fitted at the start
            self._lookups.demand_columns()
            raise misfit(spec, error) from error

    def _parse(self, records: DataFrame) -> DataFrame:
        """Return the view ``source``, by columns of the epochs before where they cannot have changed."""
        source = self._spec.source.kafka
        if self._columns is None:
            with_headers = transform.HEADERS in records.columns
            self._columns = transform.fixed_columns(source, with_headers=with_headers)
        if self._columns is not None:
            return self._columns.over(records)
        return transform.parse(records, source, self._written)

    def _stateful(self, spark: SparkSession, records: DataFrame) -> DataFrame:
        """Return the stream of a query that Spark keeps state for, over the records that parse."""
        source = self._spec.source.kafka
        parsed = transform.parse(records, source, self._written)
        good = transform.parsed_only(parsed)
        if source.watermark is not None:
            delay = f"{source.watermark.delay.total_seconds()} seconds"
            good = good.withWatermark(source.watermark.column, delay)
        good.createOrReplaceTempView(transform.SOURCE_VIEW)
        self._lookups.refresh(spark)
        return spark.sql(self._spec.job_sql)
