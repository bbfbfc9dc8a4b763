"""Does Spark take the query? Asked at the start, before anything is made or fenced, over views without rows.

A validation asks the same, long before (:mod:`airflow_provider_sinks.streaming.sql_answers`).

The user's own text is analysed first, over views that have the user's columns alone, so that what Spark says
about it speaks of nothing that the user has not written. Then what the job really runs: the rewritten query,
its key and its value.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL, analyse, select_sql
from airflow_provider_sinks.core.spec.changes import problems_of_changes
from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec
from airflow_provider_sinks.streaming import transform
from airflow_provider_sinks.streaming.lookups import view

_RECORD = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
"""The columns of Spark's Kafka source."""
_PLACE = re.compile(r"\s*SQLSTATE: \w+[.;]?|;? ?line \d+ pos \d+")
_ERROR_CLASS = re.compile(r"^\[[\w.]+\] ")
_VIEWS = threading.Lock()
"""Views have names of the whole session: of several sinks in one driver, one at a time is analysed."""


def demand_analysable(spark: SparkSession, spec: SinkSpec, lookups: Mapping[str, pa.Table]) -> DataFrame:
    """Let Spark analyse what the sink would run.

    :param lookups: the tables of the lookups, without rows.
    :returns: the query's columns with the source columns behind them, without rows.
    :raises ConfigurationError: Spark does not take it; each problem names the option.
    """
    with _VIEWS:
        try:
            return _demand_analysable(spark, spec, lookups)
        finally:
            for name in (transform.SOURCE_VIEW, *spec.lookups):
                spark.catalog.dropTempView(name)


def _demand_analysable(spark: SparkSession, spec: SinkSpec, lookups: Mapping[str, pa.Table]) -> DataFrame:
    for name, rows in lookups.items():
        view(spark, name, rows)
    if problems := list(problems_of_changes(spec)):
        raise ConfigurationError(f'sink "{spec.name}" is not valid', problems)
    stream = not spec.shape.row_wise
    records = _records(spark, stream=stream)
    parsed = transform.parse(records, spec.source.kafka)
    _source(spec, transform.parsed_only(parsed), stream=stream).createOrReplaceTempView(transform.SOURCE_VIEW)
    _demand_query(spark, spec)
    if not stream:
        parsed.createOrReplaceTempView(transform.SOURCE_VIEW)
    try:
        output = spark.sql(spec.job_sql)
        whole = transform.with_source_columns(output) if stream else output
        kind(spec).demand_fits(whole, spec)
    except AnalysisException as error:
        raise misfit(spec, error) from error
    return whole


def misfit(spec: SinkSpec, error: AnalysisException, found: Sequence[Problem] = ()) -> ConfigurationError:
    """Return the error of a query that Spark does not take, in words that name nothing of ours.

    :param found: what is wrong with it, by option, if that is known.
    """
    option = "query" if spec.query is not None else "select"
    problems = found or [Problem(option, _words(str(error)))]
    return ConfigurationError(f'Spark does not take the query of sink "{spec.name}"', problems)


def _demand_query(spark: SparkSession, spec: SinkSpec) -> None:
    """Analyse the user's own text; where it is written in parts, say which parts it is."""
    try:
        _demand_on_stream(spark, spec, spark.sql(spec.sql))
    except AnalysisException as error:
        found = list(_part_problems(spark, spec)) if spec.query is None else []
        raise misfit(spec, error, found) from error


def _demand_on_stream(spark: SparkSession, spec: SinkSpec, output: DataFrame) -> None:
    """Ask Spark whether a stream can run the query: else it says so only when the stream starts."""
    if not output.isStreaming:
        return
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no word for it
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = modes.Append() if spec.stream_mode is OutputMode.APPEND else modes.Update()
    plan = output._jdf.queryExecution().analyzed()  # noqa: SLF001  likewise
    jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, mode)


def _part_problems(spark: SparkSession, spec: SinkSpec) -> Iterator[Problem]:
    """Give every part that does not fit, each read together with the good ones before it.

    An item may name the column of one before it: of a bad one that is no problem of its own.
    """
    good: list[str] = []
    bad: list[str] = []
    for index, item in enumerate(spec.select or ()):
        error = _misfit_of(spark, select_sql([*good, item], None))
        if error is None:
            good.append(item)
            continue
        if _missing_column(error) not in bad:
            yield Problem(f"select[{index}]", _words(str(error)))
        bad += analyse(select_sql([item], None)).columns or ()
    if spec.where is not None and (error := _misfit_of(spark, select_sql(None, spec.where))) is not None:
        yield Problem("where", _words(str(error)))


def _misfit_of(spark: SparkSession, text: str) -> AnalysisException | None:
    try:
        spark.sql(text)
    except AnalysisException as error:
        return error
    return None


def _missing_column(error: AnalysisException) -> str:
    """Return the column that is not there, if that is what is wrong."""
    if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        return ""
    return (error.getMessageParameters() or {}).get("objectName", "").strip("`")


def _records(spark: SparkSession, *, stream: bool) -> DataFrame:
    """Return Kafka records: none of them, or a stream of them that is never started."""
    rows = spark.readStream.format("rate").load() if stream else spark.range(0).toDF("none")
    return rows.select(*(sql.lit(None).cast(kind).alias(name) for name, kind in _RECORD.items()))


def _source(spec: SinkSpec, good: DataFrame, *, stream: bool) -> DataFrame:
    watermark = spec.source.kafka.watermark
    if watermark is None or not stream:
        return good
    return good.withWatermark(watermark.column, f"{watermark.delay.total_seconds()} seconds")


def _words(text: str) -> str:
    """Return what Spark says, without its plan, its codes, its places in the text, and names of ours."""
    said = _ERROR_CLASS.sub("", _PLACE.sub("", text.strip().partition("\n")[0])).strip()
    ours = re.compile(rf"(?:, )?`[^`]*`\.`{INTERNAL}\w+`|(?:, )?`?{INTERNAL}\w+`?")
    return ours.sub("", said).rstrip(" ;.")
