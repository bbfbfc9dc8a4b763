"""What a message carries beside its key and value, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, named
from airflow_provider_sinks.connectors.kafka.columns import HEADER_NAME, HEADER_VALUE, HEADERS_TYPE
from airflow_provider_sinks.connectors.kafka.target import KafkaTarget
from airflow_provider_sinks.core.dead_letters.headers import SOURCE_HEADER
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

_TIMES = ("timestamp", "timestamp_ntz")
_CASTS = {"bigint": "timestamp_millis({})", "int": "timestamp_seconds({})"}
_HEADER_EXTRA_BYTES = 10


def demand_columns(output: DataFrame, names: list[str], target: KafkaTarget) -> None:
    """Raise :class:`ConfigurationError` when a column is not there, or is no time.

    :param names: of the query's columns.
    """
    found = [
        Problem(f"target.kafka.{option}", f"column {name!r} is not in the output: {', '.join(names)}")
        for option, name in target.columns_beside
        if name not in names
    ]
    kind = dict(output.dtypes).get(target.time_column or "", "timestamp")
    if not found and kind not in _TIMES:
        cast = _CASTS.get(kind, "CAST({} AS timestamp)").format(target.time_column)
        what = f"column {target.time_column!r} is {kind}, which is no time"
        found.append(Problem("target.kafka.timestamp.column", what, f"such as {cast}"))
    if found:
        raise ConfigurationError("what messages carry does not fit the query", found)


def as_bytes(output: DataFrame, name: str) -> Column:
    """Return a column as it is written by itself: bytes as they are, anything else as text."""
    column = named(name)
    return column if dict(output.dtypes)[name] == "binary" else column.cast("string").cast("binary")


def headers(output: DataFrame, target: KafkaTarget, *, replayed: bool) -> Column:
    """Return the headers of each row; a null column is a header without a value.

    :param replayed: the source records are dead letters, which keep the headers of the records in theirs.
    """
    if target.passes_headers:
        passed = _headers_of_source(replayed=replayed)
        return sql.coalesce(passed, sql.array().cast(HEADERS_TYPE))
    pairs = [_pair(sql.lit(name), _text(output, column)) for name, column in target.header_columns.items()]
    return sql.array(*pairs)


def headers_bytes(column: Column) -> Column:
    """Return how many bytes headers add to a record at most."""
    sizes = sql.transform(
        column,
        lambda one: (
            sql.octet_length(one[HEADER_NAME])
            + sql.coalesce(sql.octet_length(one[HEADER_VALUE]), sql.lit(0))
            + sql.lit(_HEADER_EXTRA_BYTES)
        ),
    )
    return sql.coalesce(sql.aggregate(sizes, sql.lit(0), lambda total, one: total + one), sql.lit(0))


def time_ms(target: KafkaTarget, *, replayed: bool) -> Column:
    """Return the time of each message in milliseconds since 1970.

    :param replayed: the source records are dead letters, which keep the times of records in their headers.
    """
    if target.time_column is not None:
        return sql.unix_millis(named(target.time_column).cast("timestamp"))
    return source_time_ms(replayed=replayed)


def source_time_ms(*, replayed: bool) -> Column:
    """Return the time of each source record in milliseconds since 1970.

    :param replayed: the source records are dead letters, which keep the times of records in their headers.
    """
    return letter_header("source.timestamp").try_cast("bigint") if replayed else sql.col(rows.RAW_TIMESTAMP)


def time_error(target: KafkaTarget, *, replayed: bool) -> Column:
    """Return why a row has no time that Kafka takes, or null; librdkafka takes 0 for *now*."""
    time, column = time_ms(target, replayed=replayed), target.time_column
    said = sql.lit("The timestamp cannot be written: ")
    if column is None:
        return sql.when(
            sql.coalesce(time, sql.lit(0)) <= 0, sql.concat(said, sql.lit("the source record has none."))
        )
    early = sql.concat(
        said,
        sql.lit(f"column {column} is "),
        named(column).cast("string"),
        sql.lit(", and times of messages are later than 1970-01-01 00:00:00 UTC."),
    )
    missing = sql.concat(said, sql.lit(f"column {column} is null."))
    return sql.when(time.isNull(), missing).when(time <= 0, early)


def letter_header(name: str) -> Column:
    """Return the first header of this name that a letter has, as text."""
    pairs = sql.from_json(sql.col(rows.RAW_HEADERS), "array<array<string>>")
    found = sql.filter(pairs, lambda pair: pair[0] == name)
    return sql.unbase64(sql.get(found, sql.lit(0))[1]).cast("string")


def _headers_of_source(*, replayed: bool) -> Column:
    pairs = sql.from_json(sql.col(rows.RAW_HEADERS), "array<array<string>>")
    if replayed:
        pairs = sql.filter(pairs, lambda pair: sql.startswith(pair[0], sql.lit(SOURCE_HEADER)))
        return sql.transform(
            pairs,
            lambda pair: _pair(sql.substr(pair[0], sql.lit(len(SOURCE_HEADER) + 1)), sql.unbase64(pair[1])),
        )
    return sql.transform(pairs, lambda pair: _pair(pair[0], sql.unbase64(pair[1])))


def _pair(name: Column, value: Column) -> Column:
    return sql.struct(name.alias(HEADER_NAME), value.alias(HEADER_VALUE))


def _text(output: DataFrame, name: str) -> Column:
    """Return the column of a header: what has parts as JSON."""
    if isinstance(output.schema[name].dataType, StructType | ArrayType | MapType):
        return as_json(named(name)).cast("binary")
    return as_bytes(output, name)
