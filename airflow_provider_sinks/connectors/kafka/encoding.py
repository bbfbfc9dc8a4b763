"""From a query's rows to the bytes of Kafka records, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, named
from airflow_provider_sinks.connectors.kafka import carried_columns
from airflow_provider_sinks.connectors.kafka.carried_columns import as_bytes
from airflow_provider_sinks.connectors.kafka.columns import HEADERS, KEY, PARTITION_KEY, TIME, VALUE
from airflow_provider_sinks.connectors.kafka.registered_encoding import written_bytes, written_error
from airflow_provider_sinks.connectors.kafka.surely_taken import SurelyTaken
from airflow_provider_sinks.connectors.kafka.target import KafkaTarget
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.parts import Format


def encode(
    output: DataFrame,
    target: KafkaTarget,
    taken: SurelyTaken | None,
    written: Mapping[Part, WrittenBy] | None = None,
    *,
    replayed: bool = False,
) -> DataFrame:
    """Return the columns of a Kafka writer (:data:`.columns.WRITER_COLUMNS`) for the rows of a query.

    :param output: the query's columns, then the source columns.
    :param taken: what is not set aside for sure; ``None`` where nothing is set aside.
    :param written: by what the parts are written whose schemas a registry has; ``None`` leaves them empty,
        where only the other columns count.
    :param replayed: the source records are dead letters.
    :raises ConfigurationError: when the columns do not fit the target's key and format.
    """
    names = [name for name in output.columns if not name.startswith(INTERNAL)]
    carried_columns.demand_columns(output, names, target)
    if written or target.has_time:
        wrong = _error(output, names, target, written or {}, replayed=replayed)
        output = output.withColumn(rows.ERROR, sql.coalesce(sql.col(rows.ERROR), wrong))
    found = {KEY: _key(output, names, target, written), VALUE: _value(output, names, target, written)}
    found |= _carried(output, target, replayed=replayed)
    is_good = sql.col(rows.ERROR).isNull()
    own = [sql.when(is_good, column).alias(name) for name, column in found.items()]
    if taken is None:
        # Spark asks each column for its size after each row (spark.sql.execution.arrow.maxBytesPerBatch)
        return output.select(*rows.COORDINATES, *own)
    encoded = output.select(*rows.COORDINATES, *own, *rows.RAW)
    needed = ~is_good | ~_is_surely_taken(encoded, taken)
    raw = [sql.when(needed, sql.col(name)).alias(name) for name in rows.RAW]
    return encoded.select(*rows.COORDINATES, *found, *raw)


def _carried(output: DataFrame, target: KafkaTarget, *, replayed: bool) -> dict[str, Column]:
    """Return the columns of what messages carry, as far as the target says something about it."""
    found = {}
    if target.headers is not None:
        found[HEADERS] = carried_columns.headers(output, target, replayed=replayed)
    if target.has_time:
        found[TIME] = carried_columns.time_ms(target, replayed=replayed)
    if target.partition_by:
        found[PARTITION_KEY] = _text_key(output, target.partition_by)
    return found


def _is_surely_taken(encoded: DataFrame, taken: SurelyTaken) -> Column:
    size = sum((sql.coalesce(sql.length(name), sql.lit(0)) for name in (KEY, VALUE)), sql.lit(0))
    if HEADERS in encoded.columns:
        size = size + carried_columns.headers_bytes(sql.col(HEADERS))
    is_small = size <= taken.size_bytes
    if TIME not in encoded.columns:
        return is_small
    return is_small & sql.coalesce(sql.col(TIME).between(*taken.times_ms), sql.lit(True))


def _error(
    output: DataFrame,
    names: list[str],
    target: KafkaTarget,
    written: Mapping[Part, WrittenBy],
    *,
    replayed: bool,
) -> Column:
    """Return why a row cannot be written, where its source record parsed."""
    error = sql.lit(None).cast("string")
    if target.has_time:
        error = carried_columns.time_error(target, replayed=replayed)
    if Part.VALUE in written:
        columns = _value_columns(output, names, target)
        why = written_error(output, columns, written[Part.VALUE], Part.VALUE)
        error = sql.coalesce(sql.when(_has_value(names, target), why), error)
    if Part.KEY in written:
        why = written_error(output, _named(target.key), written[Part.KEY], Part.KEY)
        error = sql.coalesce(why, error)
    return error


def _named(names: Iterable[str]) -> list[tuple[str, Column]]:
    return [(name, named(name)) for name in names]


def _value_columns(output: DataFrame, names: list[str], target: KafkaTarget) -> list[tuple[str, Column]]:
    """Return the fields of a value that is a record: of one column, or all of them."""
    if target.value is None:
        return _named(_fields(names, target))
    kind = output.schema[target.value].dataType
    if not isinstance(kind, StructType):
        raise TypeError(kind)
    return [(field.name, named(target.value).getField(field.name)) for field in kind]


def _has_value(names: list[str], target: KafkaTarget) -> Column:
    """Tell whether a row has a value at all, or is a tombstone."""
    if target.value is not None:
        return named(target.value).isNotNull()
    if not target.tombstones:
        return sql.lit(True)
    others = [named(name).isNotNull() for name in names if name not in target.key]
    if not others:
        problem = Problem(
            "target.kafka.tombstones",
            f"key has every column, {', '.join(names)}: each row would be a delete",
            "select a column that is not in the key, or leave tombstones out",
        )
        raise ConfigurationError("the value does not fit the query", [problem])
    return functools.reduce(operator.or_, others)


def _key(
    output: DataFrame, names: list[str], target: KafkaTarget, written: Mapping[Part, WrittenBy] | None
) -> Column:
    missing = [name for name in target.key if name not in names]
    if missing:
        problem = Problem(
            "target.kafka.key", f"column {missing[0]!r} is not in the output: {', '.join(names)}"
        )
        raise ConfigurationError("the key does not fit the query", [problem])
    if not target.key:
        return sql.col(rows.RAW_KEY)
    if target.key_format is not None:
        return _registered(output, _named(target.key), Part.KEY, written)
    return _text_key(output, target.key)


def _text_key(output: DataFrame, columns: Sequence[str]) -> Column:
    """Return columns as a key is written of them: one as text, several as JSON."""
    if len(columns) == 1:
        return as_bytes(output, columns[0])
    return _json([named(name) for name in columns])


def _fields(names: list[str], target: KafkaTarget) -> list[str]:
    """Return the columns of a value that has several."""
    if found := target.value_columns(names):
        return found
    problem = Problem(
        "target.kafka.key_in_value",
        f"leaves nothing: key has every column, {', '.join(names)}",
        "select a column that is not in the key",
    )
    raise ConfigurationError("the value does not fit the query", [problem])


def _registered(
    output: DataFrame,
    columns: list[tuple[str, Column]],
    part: Part,
    written: Mapping[Part, WrittenBy] | None,
) -> Column:
    if written is None:
        return sql.lit(None).cast("binary")
    return written_bytes(output, columns, written[part])


def _value(
    output: DataFrame, names: list[str], target: KafkaTarget, written: Mapping[Part, WrittenBy] | None
) -> Column:
    if target.format.is_registered:
        value = _registered(output, _value_columns(output, names, target), Part.VALUE, written)
        return sql.when(_has_value(names, target), value)
    if target.format is Format.JSON and target.value is None:
        value = _json([named(name) for name in _fields(names, target)])
        return sql.when(_has_value(names, target), value) if target.tombstones else value
    column = _value_column(names, target)
    kind = dict(output.dtypes)[column]
    if target.format is Format.JSON and kind not in ("string", "binary"):
        return as_json(named(column)).cast("binary")
    return as_bytes(output, column)


def _value_column(names: list[str], target: KafkaTarget) -> str:
    others = [name for name in names if name not in target.key]
    column = target.value or (others[0] if len(others) == 1 else None)
    if column in names:
        return column
    problem = Problem(
        "target.kafka.value",
        f"names no output column: {column}" if column else f"format {target.format.value} takes one column",
        f"the output has {', '.join(names)}",
    )
    raise ConfigurationError("the value does not fit the query", [problem])


def _json(columns: list[Column]) -> Column:
    return as_json(sql.struct(*columns)).cast("binary")
