"""Which type of Spark becomes which of Iceberg: exactly, or not at all.

Both are brought to one form, a text that has no room for doubt: ``struct<"a":int,"b":array<string>>``. A
column is written as it is where both texts are equal; a plain one is widened where no value changes; all else
is refused with the cast to write. Whether a value may be null is no part of a type here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.table_format.types import Column, SparkType, spark_kind
from airflow_provider_sinks.core.spec.problems import UnfitError

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

_ICEBERG = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
}
_CREATED = {"tinyint": "int", "smallint": "int"}
"""What Iceberg has no type for, and what holds all of its values."""


def iceberg_kind(given: IcebergType) -> str:
    """Return a type of Iceberg in the common form; empty where Spark has none, wherever it stands inside."""
    from pyiceberg.types import DecimalType, ListType, MapType, StructType

    if isinstance(given, StructType):
        fields = [(json.dumps(field.name), iceberg_kind(field.field_type)) for field in given.fields]
        return _whole("struct<{}>", *(f"{name}:{kind}" if kind else "" for name, kind in fields), joined=True)
    if isinstance(given, ListType):
        return _whole("array<{}>", iceberg_kind(given.element_type))
    if isinstance(given, MapType):
        return _whole("map<{},{}>", iceberg_kind(given.key_type), iceberg_kind(given.value_type))
    if isinstance(given, DecimalType):
        return f"decimal({given.precision},{given.scale})"
    return _ICEBERG.get(str(given), "")


def required_inside(given: IcebergType, path: str) -> Iterator[str]:
    """Give what takes no null inside of a column: no query of Spark can promise that."""
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(given, StructType):
        for field in given.fields:
            name = f"{path}.{field.name}"
            if field.required:
                yield name
            yield from required_inside(field.field_type, name)
    elif isinstance(given, ListType):
        if given.element_required:
            yield f"{path}.element"
        yield from required_inside(given.element_type, f"{path}.element")
    elif isinstance(given, MapType):
        if given.value_required:
            yield f"{path}.value"
        yield from required_inside(given.key_type, f"{path}.key")
        yield from required_inside(given.value_type, f"{path}.value")


def field_of(schema: Schema, name: str) -> NestedField:
    """Return a column by its whole name: a dot in it is no step into a struct."""
    return next(field for field in schema.fields if field.name == name)


def columns_of(schema: Schema) -> dict[str, Column]:
    """Return the columns of a table."""
    return {
        field.name: Column(
            field.name, iceberg_kind(field.field_type), str(field.field_type), bool(field.required)
        )
        for field in schema.fields
    }


def created(columns: Mapping[str, SparkType], key: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a new table.

    :param key: columns that are the identity of a row, and take no null.
    :raises UnfitError: Iceberg has no type for one.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    ids = count(1)
    numbered = [(name, next(ids)) for name in columns]
    fields = [
        NestedField(
            field_id=number,
            name=name,
            field_type=_created(columns[name], ids, name),
            required=name in key,
        )
        for name, number in numbered
    ]
    return Schema(*fields, identifier_field_ids=[number for name, number in numbered if name in key])


def _created(given: SparkType, ids: Iterator[int], path: str) -> IcebergType:
    from pyiceberg.types import ListType, MapType, NestedField, StructType

    if isinstance(given, str):
        return _created_plain(given, path)
    match given["type"]:
        case "struct":
            numbered = [(field, next(ids)) for field in given["fields"]]
            return StructType(
                *(
                    NestedField(
                        field_id=number,
                        name=field["name"],
                        field_type=_created(field["type"], ids, f"{path}.{field['name']}"),
                        required=False,
                    )
                    for field, number in numbered
                )
            )
        case "array":
            number = next(ids)
            element = _created(given["elementType"], ids, f"{path}.element")
            return ListType(element_id=number, element_type=element, element_required=False)
        case "map":
            key, value = next(ids), next(ids)
            return MapType(
                key_id=key,
                key_type=_created(given["keyType"], ids, f"{path}.key"),
                value_id=value,
                value_type=_created(given["valueType"], ids, f"{path}.value"),
                value_required=False,
            )
    raise _no_type(path, spark_kind(given))


def _created_plain(given: str, path: str) -> IcebergType:
    from pyiceberg.schema import Schema

    kind = spark_kind(given)
    kind = _CREATED.get(kind, kind)
    word = next((word for word, spark in _ICEBERG.items() if spark == kind), "")
    if not word and not kind.startswith("decimal("):
        raise _no_type(path, kind)
    described = word or kind.replace(",", ", ")
    fields = [{"id": 1, "name": "x", "type": described, "required": False}]
    found: IcebergType = Schema.model_validate({"type": "struct", "fields": fields}).fields[0].field_type
    return found


def _no_type(path: str, kind: str) -> UnfitError:
    return UnfitError(f"column {path!r}: Iceberg has no type for Spark's {kind}", "CAST it in the query")


def _whole(pattern: str, *kinds: str, joined: bool = False) -> str:
    if not all(kinds):
        return ""
    return pattern.format(",".join(kinds)) if joined else pattern.format(*kinds)
