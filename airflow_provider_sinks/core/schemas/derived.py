"""An Avro schema made of the columns of a query, and whether columns fit a schema that is there already.

Columns come as Spark writes its own types, as JSON. A type either has exactly one form in Avro or is refused
with the cast to write: nothing is rounded, cut or turned on the way.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.schemas.avro_names import NAME
from airflow_provider_sinks.core.schemas.avro_types import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)
from airflow_provider_sinks.core.schemas.compatibility import described
from airflow_provider_sinks.core.schemas.spark_types import ddl
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

SparkType = str | Mapping[str, Any]
"""A type as Spark writes it as JSON: a name, or a mapping with its parts."""

_PLAIN: Mapping[str, Any] = {
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
_TAKES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("boolean", ""): ("boolean",),
    ("int", ""): ("integer", "short", "byte"),
    ("long", ""): ("long",),
    ("float", ""): ("float",),
    ("double", ""): ("double",),
    ("string", ""): ("string",),
    ("string", "uuid"): ("string",),
    ("bytes", ""): ("binary",),
    ("int", "date"): ("date",),
    ("long", "timestamp-micros"): ("timestamp",),
    ("long", "timestamp-millis"): ("timestamp",),
    ("long", "local-timestamp-micros"): ("timestamp_ntz",),
    ("long", "local-timestamp-millis"): ("timestamp_ntz",),
    ("int", "time-millis"): ("integer",),
    ("long", "time-micros"): ("long",),
}
"""What Spark writes into a primitive type and its logical type without a change."""
_CASTS = {"interval": "string", "variant": "string", "void": "string", "char": "string", "varchar": "string"}


@dataclass(frozen=True)
class Column:
    """One column of a query, as Spark tells it.

    :param comment: what a lookup's table or the query says about it.
    """

    name: str
    type: SparkType
    nullable: bool = True
    comment: str = ""


def columns_of(struct: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a struct that Spark wrote as JSON."""
    return tuple(
        Column(one["name"], one["type"], one["nullable"], one.get("metadata", {}).get("comment", ""))
        for one in struct["fields"]
    )


def derive(columns: Sequence[Column], record: str, doc: str, *, nullable: bool = True) -> str:
    """Return the schema of some columns, as JSON.

    A column that may be null is a union with null in front, and null its default.

    :param record: the full name of the record.
    :param nullable: whether columns may be null at all; of a key none may.
    :raises UnfitPartsError: with every column that has no form in Avro.
    """
    making = _Making()
    tree = making.record(columns, record, "", nullable=nullable)
    if making.problems:
        raise UnfitPartsError(making.problems)
    return json.dumps({**tree, "doc": doc})


def misfits(columns: Sequence[Column], schema: AvroSchema) -> tuple[Problem, ...]:
    """Return what keeps columns from being written by a schema, each with the cast to write."""
    if not isinstance(schema.type, Record):
        return (Problem("", f"is {described(schema.type)}, and a row is a record"),)
    return tuple(_record_misfits(columns, schema.type, ""))


class _Making:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def record(
        self, columns: Sequence[Column], name: str, path: str, *, nullable: bool = True
    ) -> dict[str, Any]:
        fields = [self._field(one, name, path, nullable=nullable) for one in columns]
        namespace, _, last = name.rpartition(".")
        placed = {"namespace": namespace} if namespace else {}
        return {"type": "record", "name": last, **placed, "fields": fields}

    def _field(self, column: Column, record: str, path: str, *, nullable: bool) -> dict[str, Any]:
        below = f"{path}.{column.name}" if path else column.name
        if not NAME.fullmatch(column.name):
            hint = f"name it otherwise, such as AS {_renamed(column.name)}"
            self.problems.append(Problem(below, f"{column.name!r} is no name in Avro", hint))
        kind = self._type(column.type, f"{record}_{column.name}", below)
        doc = {"doc": column.comment} if column.comment else {}
        if column.nullable and nullable:
            return {"name": column.name, "type": ["null", kind], "default": None, **doc}
        return {"name": column.name, "type": kind, **doc}

    def _type(self, kind: SparkType, record: str, path: str) -> Any:
        if isinstance(kind, str):
            return self._plain(kind, path)
        match kind["type"]:
            case "struct":
                return self.record(columns_of(kind), record, path)
            case "array":
                items = self._type(kind["elementType"], record, f"{path}[]")
                return {"type": "array", "items": _or_null(items, kind["containsNull"])}
            case "map":
                if kind["keyType"] != "string":
                    self.problems.append(map_not_by_string(kind, path, "Avro"))
                values = self._type(kind["valueType"], record, f"{path}[]")
                return {"type": "map", "values": _or_null(values, kind["valueContainsNull"])}
            case other:
                return self._refuse(str(other), path)

    def _plain(self, kind: str, path: str) -> Any:
        if kind.startswith("decimal("):
            precision, scale = map(int, kind[8:-1].split(","))
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        return _PLAIN[kind] if kind in _PLAIN else self._refuse(kind, path)

    def _refuse(self, kind: str, path: str) -> str:
        self.problems.append(without_form(kind, path, "Avro"))
        return "string"


def without_form(kind: str, path: str, language: str) -> Problem:
    """Return what is said of a column whose type a language of schemas has not."""
    target = next((cast for name, cast in _CASTS.items() if kind.startswith(name)), "string")
    return Problem(path, f"is {kind}, which {language} has not", f"CAST({path} AS {target})")


def map_not_by_string(kind: Mapping[str, Any], path: str, language: str) -> Problem:
    """Return what is said of a map whose keys are no text."""
    what = f"is a map by {said(kind['keyType'])}, and {language} has maps by string"
    return Problem(path, what, f"CAST({path} AS map<string, ...>)")


def _or_null(kind: Any, nullable: bool) -> Any:
    return ["null", kind] if nullable else kind


def _renamed(name: str) -> str:
    kept = "".join(letter if NAME.fullmatch(f"_{letter}") else "_" for letter in name) or "column"
    return kept if NAME.fullmatch(kept) else f"_{kept}"


def _record_misfits(columns: Sequence[Column], record: Record, path: str) -> Iterator[Problem]:
    types = {field.name: field.type for field in record.fields}
    needed = [name for name, takes in types.items() if not (isinstance(takes, Union) and takes.is_nullable)]
    for column in columns:
        if column.name in types:
            yield from _misfits(column.type, types[column.name], _below(path, column.name))
    yield from unlike_fields(columns, types, needed, path)


def unlike_fields(
    columns: Sequence[Column], fields: Collection[str], needed: Iterable[str], path: str
) -> Iterator[Problem]:
    """Say which columns are no field, and which fields that must be there no column gives.

    :param path: of the struct that has the columns; empty at the top.
    """
    for column in columns:
        if column.name not in fields:
            hint = nearest(column.name, fields) or f"leave it out; fields: {', '.join(fields)}"
            yield Problem(_below(path, column.name), "is no field of the schema", hint)
    given = {column.name for column in columns}
    for name in needed:
        if name not in given:
            what = "is required by the schema, and no column gives it"
            yield Problem(_below(path, name), what, f"add ... AS {name}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _misfits(kind: SparkType, takes: AvroType, path: str) -> Iterator[Problem]:
    match takes:
        case Union() if len(takes.others) == 1:
            yield from _misfits(kind, takes.others[0], path)
        case Union():
            yield Problem(path, f"is {described(takes)} in the schema, and a column has one type")
        case Record() if not isinstance(kind, str) and kind["type"] == "struct":
            yield from _record_misfits(columns_of(kind), takes, path)
        case Array() if not isinstance(kind, str) and kind["type"] == "array":
            yield from _misfits(kind["elementType"], takes.items, f"{path}[]")
        case Map() if not isinstance(kind, str) and kind["type"] == "map" and kind["keyType"] == "string":
            yield from _misfits(kind["valueType"], takes.values, f"{path}[]")
        case Primitive() | Fixed() | Enum() if _is_taken(kind, takes):
            return
        case _:
            yield Problem(path, f"is {said(kind)}, and {described(takes)} in the schema", _cast(takes, path))


def _is_taken(kind: SparkType, takes: Primitive | Fixed | Enum) -> bool:
    if isinstance(takes, Enum):
        return kind == "string"
    if takes.logical.name == "decimal":
        return kind == f"decimal({takes.logical.precision},{takes.logical.scale})"
    if isinstance(takes, Fixed):
        return kind == "binary"
    return kind in _TAKES.get((takes.kind, takes.logical.name), ())


def _cast(takes: AvroType, path: str) -> str:
    try:
        return f"CAST({path} AS {ddl(takes)})"
    except (KeyError, ValueError):
        return ""


def said(kind: SparkType) -> str:
    """Return a type of Spark in one word."""
    return kind if isinstance(kind, str) else str(kind["type"])
