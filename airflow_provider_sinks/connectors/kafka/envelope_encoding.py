"""Whether a row is a delete, and Debezium's envelope around it: Spark's expressions, run in the JVM."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import named
from airflow_provider_sinks.connectors.kafka import carried_columns
from airflow_provider_sinks.connectors.kafka.envelope_types import (
    AFTER,
    BEFORE,
    CONNECTOR,
    DELETE,
    OPERATION,
    SOURCE,
    STATE,
    TIME_MS,
)
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.kafka.target import KafkaTarget
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.source import DELETED_FIELD


def has_value(names: Sequence[str], target: KafkaTarget) -> Column:
    """Tell whether a row has a value at all, or is a delete.

    :param names: of the query's columns.
    :raises ConfigurationError: each row would be a delete.
    """
    if target.value is not None:
        return named(target.value).isNotNull()
    if not target.deletes_rows:
        return sql.lit(True)
    others = [named(name).isNotNull() for name in names if name not in target.key]
    if not others:
        instead = "write tombstones: ignore" if target.replaces else "leave tombstones out"
        problem = Problem(
            "target.kafka.tombstones",
            f"key has every column, {', '.join(names)}: each row would be a delete",
            f"select a column that is not in the key, or {instead}",
        )
        raise ConfigurationError("the value does not fit the query", [problem])
    return functools.reduce(operator.or_, others)


def null_key(target: KafkaTarget) -> Column:
    """Return why a row that replaces by its key has none, or null."""
    wrong = [sql.when(named(name).isNull(), sql.lit(f"key column {name} is null")) for name in target.key]
    return sql.coalesce(*wrong)


def envelope_columns(names: Sequence[str], sink: KafkaSink) -> list[tuple[str, Column]]:
    """Return the fields of Debezium's envelope for a row.

    Of a delete ``before`` is what the row itself says: its key, and nulls.

    :param names: of the query's columns.
    """
    target = sink.target.kafka
    is_there, row = has_value(names, target), [named(name).alias(name) for name in names]
    if target.marks_deletes:
        row.append(sql.when(is_there, sql.lit("false")).otherwise(sql.lit("true")).alias(DELETED_FIELD))
        is_there = sql.lit(True)
    whole = sql.struct(*row)
    return [
        (BEFORE, sql.when(~is_there, whole)),
        (AFTER, sql.when(is_there, whole)),
        (SOURCE, _source(sink)),
        (OPERATION, sql.when(is_there, sql.lit(STATE)).otherwise(sql.lit(DELETE))),
        (TIME_MS, sql.unix_millis(sql.current_timestamp())),
    ]


def _source(sink: KafkaSink) -> Column:
    """Return where a row comes from; of a replayed letter, where the record did that was set aside."""
    topic = sql.lit(sink.source.kafka.topic)
    partition, offset = sql.col(rows.PARTITION), sql.col(rows.OFFSET)
    if sink.replay is not None:
        topic = sql.coalesce(carried_columns.letter_header("source.topic"), sql.lit(sink.replay.topic))
        partition = carried_columns.letter_header("source.partition").try_cast("int")
        offset = carried_columns.letter_header("source.offset").try_cast("bigint")
    found = {
        "connector": sql.lit(CONNECTOR),
        "name": sql.lit(sink.first_name),
        TIME_MS: carried_columns.source_time_ms(replayed=sink.replay is not None),
        "topic": topic,
        "partition": partition,
        "offset": offset,
    }
    return sql.struct(*(column.alias(name) for name, column in found.items()))
