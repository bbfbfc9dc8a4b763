"""From bytes in Confluent's wire format to the fields of a JSON Schema: whole, or an error that says why.

Read as any JSON is (:mod:`.json_values`), by the sink's own schema, whichever one it was written with; then
judged by what that schema says beyond types. Two readings of Spark are no reading of a schema: a number, an
object or an array as text, and text as a decimal. A cheap look tells which values may hold one of them: a
field's name, quoted, with the other sort of value behind it, or a backslash, which may hide either. Those are
read once more with each such field as a variant, which keeps its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from airflow_provider_sinks.connectors.schema_registry.json_guards import by_schema, reasons
from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, first, told
from airflow_provider_sinks.core.query.views import INTERNAL
from airflow_provider_sinks.core.schemas.json_spark import ddl
from airflow_provider_sinks.core.schemas.json_types import (
    DECIMAL,
    STRING,
    ArrayOf,
    JsonSchema,
    JsonType,
    MapOf,
    Object,
    Scalar,
    known,
)
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.streaming import json_values, wire_values
from airflow_provider_sinks.streaming.wire_values import WrittenAs

_BODY = f"{INTERNAL}json_body"
_READ = f"{INTERNAL}json_read"
_TYPED = f"{INTERNAL}json_typed"
_MOMENTS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]XXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]",
}
"""RFC 3339: by itself Spark takes a time of day for one of today, and no zone for its own."""


def decode(
    records: DataFrame, part: Part, reader: JsonSchema, written: WrittenAs
) -> tuple[DataFrame, Column]:
    """Return the records with :data:`.json_values.ERROR`, and a struct of what was read."""
    data, binary = sql.col(part.value), BinaryType()
    body = wire_values.by_schema(data, written, part, lambda _: wire_values.behind_header(data), binary)
    given = json_values.JsonBytes(sql.col(_BODY), part, _MOMENTS)
    schema = cast("StructType", _spark_type(reader.type))
    judged, columns = json_values.read_json(records.withColumn(_BODY, body), schema, given)
    whole = sql.struct(*columns)
    typed = _with_types(judged, reader.type).withColumn(_READ, whole)
    error = sql.coalesce(
        wire_values.header_error(data, written, part),
        sql.col(json_values.ERROR),
        sql.when(data.isNotNull(), _misfit(reader.type, part)),
    )
    return typed.withColumn(json_values.ERROR, error), sql.when(data.isNotNull(), sql.col(_READ))


def _misfit(kind: JsonType, part: Part) -> Column:
    found = (*_type_reasons(kind), *reasons(sql.col(_READ), kind, "", by_schema))
    return sql.concat(sql.lit(f"The {part} does not fit the schema: "), first(found), sql.lit("."))


def _with_types(judged: DataFrame, kind: JsonType) -> DataFrame:
    """Add what is read once more; null where nothing can be of another type."""
    texts, decimals = _names(kind, _is_text), _names(kind, _is_decimal)
    if not texts and not decimals:
        return judged
    text = sql.col(json_values.TRIMMED)
    other = [_behind(texts, r'[^" \t\r\nn]')] if texts else []
    other += [_behind(decimals, '"')] if decimals else []
    perhaps = reduce(Column.__or__, (sql.rlike(text, sql.lit(one)) for one in other))
    perhaps = perhaps | sql.contains(text, sql.lit("\\"))
    if _has_items(kind):
        perhaps = sql.lit(True)
    schema = cast("StructType", _as_variants(kind))
    again = sql.when(sql.col(json_values.ERROR).isNull() & perhaps, json_values.from_json(text, schema))
    return judged.withColumn(_TYPED, again)


def _behind(names: set[str], sort: str) -> str:
    """Return a pattern of a field's name with a sort of value behind it."""
    plain = (name for name in sorted(names) if "\\" not in name)
    quoted = "|".join(rf"\Q{name}\E" for name in plain)
    return rf'"(?:{quoted})"[ \t\r\n]*+:[ \t\r\n]*+{sort}'


def _is_text(kind: JsonType) -> bool:
    return isinstance(kind, Scalar) and kind.kind == STRING


def _is_decimal(kind: JsonType) -> bool:
    return isinstance(kind, Scalar) and kind.means == DECIMAL


def _names(kind: JsonType, test: Callable[[JsonType], bool]) -> set[str]:
    """Return the names of all fields of a sort, wherever they stand."""
    match known(kind):
        case Object() as found:
            own = {one.name for one in found.properties if test(known(one.type))}
            return own.union(*(_names(one.type, test) for one in found.properties))
        case ArrayOf() as array:
            return _names(array.items, test)
        case MapOf() as map_:
            return _names(map_.values, test)
        case _:
            return set()


def _has_items(kind: JsonType) -> bool:
    """Tell whether text or decimals stand where no name of the schema is in front of them."""
    match known(kind):
        case Object() as found:
            return any(_has_items(one.type) for one in found.properties)
        case ArrayOf(items=inner) | MapOf(values=inner):
            return _is_text(known(inner)) or _is_decimal(known(inner)) or _has_items(inner)
        case _:
            return False


def _as_variants(kind: JsonType) -> DataType:
    """Return the type to read by where text and decimals keep the type that they have."""
    match known(kind):
        case Object() as found:
            return StructType([StructField(one.name, _as_variants(one.type)) for one in found.properties])
        case ArrayOf() as array:
            return ArrayType(_as_variants(array.items))
        case MapOf() as map_:
            return MapType(StringType(), _as_variants(map_.values))
        case leaf if _is_text(leaf) or _is_decimal(leaf):
            return VariantType()
        case leaf:
            return _spark_type(leaf)


def _spark_type(kind: JsonType) -> DataType:
    return cast("StructType", StructType.fromDDL(f"`{_READ}` {ddl(kind)}"))[_READ].dataType


def _type_reasons(kind: JsonType) -> Iterator[Column]:
    if not _names(kind, _is_text) and not _names(kind, _is_decimal):
        return
    typed = sql.col(_TYPED)
    yield from told([(typed.isNotNull() & json_values.is_broken(typed), "a field has another type")])
    yield from reasons(typed, kind, "", _of_type)


def _of_type(value: Column, kind: JsonType, path: str) -> Iterator[Guard]:
    if not isinstance(kind, Scalar):
        return
    if _is_text(kind):
        is_other = ~sql.schema_of_variant(value).isin("STRING", "VOID")
        yield value.isNotNull() & is_other, f"field {path} is no text"
    elif _is_decimal(kind):
        yield value.isNotNull() & (sql.schema_of_variant(value) == "STRING"), f"field {path} is no number"
