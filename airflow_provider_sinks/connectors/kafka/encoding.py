"""From a query's rows to the bytes of Kafka records, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, named, own_columns, unquoted
from airflow_provider_sinks.connectors.kafka import carried_columns
from airflow_provider_sinks.connectors.kafka.carried_columns import as_bytes
from airflow_provider_sinks.connectors.kafka.columns import (
    HEADERS,
    KEY,
    PARTITION_KEY,
    TIME,
    TOMBSTONE,
    VALUE,
)
from airflow_provider_sinks.connectors.kafka.connect_encoding import connect_bytes, connect_error
from airflow_provider_sinks.connectors.kafka.envelope_encoding import envelope_columns, has_value, null_key
from airflow_provider_sinks.connectors.kafka.envelope_types import AFTER, BEFORE, SOURCE
from airflow_provider_sinks.connectors.kafka.registered_encoding import (
    NamedColumns,
    written_bytes,
    written_error,
)
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.kafka.surely_taken import SurelyTaken
from airflow_provider_sinks.connectors.kafka.target import KafkaTarget
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.parts import Format


def encode(
    output: DataFrame,
    sink: KafkaSink,
    taken: SurelyTaken | None,
    written: Mapping[Part, WrittenBy] | None = None,
) -> LaidColumns:
    """Return the columns of a Kafka writer (:data:`.columns.WRITER_COLUMNS`) for the rows of a query.

    :param output: the query's columns, then the source columns.
    :param sink: if it is a replay, the source records are dead letters.
    :param taken: what is not set aside for sure; ``None`` where nothing is set aside.
    :param written: by what the parts are written whose schemas a registry has; ``None`` leaves them empty,
        where only the other columns count.
    :raises ConfigurationError: when the columns do not fit the target's key and format.
    """
    given = _Given(output, sink, written)
    carried_columns.demand_columns(output, given.names, given.target)
    _demand_key(given)
    found = {KEY: _key(given), VALUE: _value(given), **_carried(given)}
    errors = list(_errors(given))
    judged = ((rows.ERROR, sql.coalesce(sql.col(rows.ERROR), *errors)),) if errors else ()
    is_good = sql.col(rows.ERROR).isNull()
    own = [sql.when(is_good, column).alias(name) for name, column in found.items()]
    place = unquoted(rows.COORDINATES)
    if taken is None:
        # Spark asks each column for its size after each row (spark.sql.execution.arrow.maxBytesPerBatch)
        return LaidColumns(judged, (*place, *own))
    needed = ~is_good | ~_is_surely_taken(found, taken)
    raw = [sql.when(needed, sql.col(name)).alias(name) for name in rows.RAW]
    return LaidColumns(judged, (*place, *own, *unquoted(rows.RAW)), (*place, *unquoted(found), *raw))


@dataclass(frozen=True)
class _Given:
    """The rows of a query, and how they are to be written.

    :param written: by what, where a registry has the schemas; ``None`` while they are not known.
    """

    output: DataFrame
    sink: KafkaSink
    written: Mapping[Part, WrittenBy] | None

    @property
    def target(self) -> KafkaTarget:
        return self.sink.target.kafka

    @property
    def names(self) -> list[str]:
        """The query's columns."""
        return own_columns(self.output)

    @property
    def replayed(self) -> bool:
        """Whether the source records are dead letters."""
        return self.sink.replay is not None

    @property
    def has_value(self) -> Column:
        """Whether a message has a value; Debezium's envelope says itself what it is about."""
        return sql.lit(True) if self.target.is_debezium else has_value(self.names, self.target)


def _carried(given: _Given) -> dict[str, Column]:
    """Return the columns of what messages carry, as far as the target says something about it."""
    found, target = {}, given.target
    if target.headers is not None:
        found[HEADERS] = carried_columns.headers(given.output, target, replayed=given.replayed)
    if target.has_time:
        found[TIME] = carried_columns.time_ms(target, replayed=given.replayed)
    if target.partition_by:
        found[PARTITION_KEY] = _text_key(given.output, target.partition_by)
    if target.adds_tombstones:
        found[TOMBSTONE] = ~has_value(given.names, target)
    return found


def _is_surely_taken(encoded: Collection[str], taken: SurelyTaken) -> Column:
    size = sum((sql.coalesce(sql.length(name), sql.lit(0)) for name in (KEY, VALUE)), sql.lit(0))
    if HEADERS in encoded:
        size = size + carried_columns.headers_bytes(sql.col(HEADERS))
    is_taken = size <= taken.size_bytes
    if not taken.without_key:
        is_taken = is_taken & sql.col(KEY).isNotNull()
    if TIME not in encoded:
        return is_taken
    return is_taken & sql.coalesce(sql.col(TIME).between(*taken.times_ms), sql.lit(True))


def _errors(given: _Given) -> Iterator[Column]:
    """Give why a row cannot be written where its source record parsed, or null; the first counts."""
    target, written = given.target, given.written or {}
    if target.replaces:
        yield null_key(target)
    if Part.KEY in written:
        yield written_error(given.output, _named(target.key), written[Part.KEY], Part.KEY)
    elif target.schemas_enable and target.has_object_keys:
        yield connect_error(given.output, _named(target.key), Part.KEY)
    if Part.VALUE in written:
        why = written_error(given.output, _record(given), written[Part.VALUE], Part.VALUE)
        yield sql.when(given.has_value, why)
    elif target.schemas_enable:
        yield sql.when(given.has_value, connect_error(given.output, _fields(given), Part.VALUE))
    if target.has_time:
        yield carried_columns.time_error(target, replayed=given.replayed)


def _named(names: Iterable[str]) -> list[tuple[str, Column]]:
    return [(name, named(name)) for name in names]


def _record(given: _Given) -> NamedColumns:
    """Return the fields of a value that is a record: the envelope's, those of one column, or all columns."""
    if given.target.is_debezium:
        return envelope_columns(given.names, given.sink)
    value = given.target.value
    if value is None:
        return _fields(given)
    kind = given.output.schema[value].dataType
    if not isinstance(kind, StructType):
        raise TypeError(kind)
    return [(field.name, named(value).getField(field.name)) for field in kind]


def _fields(given: _Given) -> NamedColumns:
    """Return the columns of a value that has several."""
    if found := given.target.value_columns(given.names):
        return _named(found)
    problem = Problem(
        "target.kafka.key_in_value",
        f"leaves nothing: key has every column, {', '.join(given.names)}",
        "select a column that is not in the key",
    )
    raise ConfigurationError("the value does not fit the query", [problem])


def _demand_key(given: _Given) -> None:
    missing = [name for name in given.target.key if name not in given.names]
    if missing:
        problem = Problem(
            "target.kafka.key", f"column {missing[0]!r} is not in the output: {', '.join(given.names)}"
        )
        raise ConfigurationError("the key does not fit the query", [problem])


def _key(given: _Given) -> Column:
    target = given.target
    if not target.key:
        return sql.col(rows.RAW_KEY)
    if target.key_format is not None:
        return _registered(given, _named(target.key), Part.KEY)
    if not target.has_object_keys:
        return _text_key(given.output, target.key)
    columns = _named(target.key)
    if target.schemas_enable:
        return connect_bytes(given.output, columns, Part.KEY, {"": f"{given.sink.record}.Key"})
    return _json(columns)


def _text_key(output: DataFrame, columns: Sequence[str]) -> Column:
    """Return columns as a key is written of them: one as text, several as JSON."""
    if len(columns) == 1:
        return as_bytes(output, columns[0])
    return _json(_named(columns))


def _registered(given: _Given, columns: NamedColumns, part: Part) -> Column:
    if given.written is None:
        return sql.lit(None).cast("binary")
    return written_bytes(given.output, columns, given.written[part])


def _value(given: _Given) -> Column:
    target = given.target
    if target.format.is_registered:
        return sql.when(given.has_value, _registered(given, _record(given), Part.VALUE))
    if target.format is Format.JSON and target.value is None:
        value = _object(given)
        return sql.when(given.has_value, value) if target.deletes_rows else value
    column = _value_column(given.names, target)
    kind = dict(given.output.dtypes)[column]
    if target.format is Format.JSON and kind not in ("string", "binary"):
        return as_json(named(column)).cast("binary")
    return as_bytes(given.output, column)


def _object(given: _Given) -> Column:
    """Return a value of several columns as JSON, behind its schema where messages have it."""
    columns = _record(given)
    if not given.target.schemas_enable:
        return _json(columns)
    record = given.sink.record
    names = {"": f"{record}.Value"}
    if given.target.is_debezium:
        rows_of = dict.fromkeys((BEFORE, AFTER), f"{record}.Value")
        names = {"": f"{record}.Envelope", SOURCE: f"{record}.Source", **rows_of}
    return connect_bytes(given.output, columns, Part.VALUE, names)


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


def _json(columns: NamedColumns) -> Column:
    return as_json(sql.struct(*(column.alias(name) for name, column in columns))).cast("binary")
