"""A JSON Schema made of the columns of a query, and whether columns fit a schema that is there already.

As in :mod:`.derived`: a type either has exactly one form or is refused with the cast to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.derived import (
    Column,
    SparkType,
    columns_of,
    map_not_by_string,
    said,
    unlike_fields,
    without_form,
)
from airflow_provider_sinks.core.schemas.json_compatibility import described
from airflow_provider_sinks.core.schemas.json_spark import ddl
from airflow_provider_sinks.core.schemas.json_types import (
    BASE64,
    BOOLEAN,
    DATE,
    DECIMAL,
    INTEGER,
    LOCAL_MOMENT,
    MOMENT,
    NUMBER,
    STRING,
    ArrayOf,
    JsonSchema,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Property,
    Scalar,
    known,
)
from airflow_provider_sinks.core.schemas.json_written import written
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_LANGUAGE = "JSON Schema"
_PLAIN = {
    "boolean": Scalar(BOOLEAN),
    "byte": Scalar(INTEGER, "int8"),
    "short": Scalar(INTEGER, "int16"),
    "integer": Scalar(INTEGER, "int32"),
    "long": Scalar(INTEGER),
    "float": Scalar(NUMBER, "float32"),
    "double": Scalar(NUMBER),
    "string": Scalar(STRING),
    "binary": Scalar(STRING, BASE64),
    "date": Scalar(STRING, DATE),
    "timestamp": Scalar(STRING, MOMENT),
    "timestamp_ntz": Scalar(STRING, LOCAL_MOMENT),
}
_WHOLE = ("byte", "short", "integer", "long")
_TAKES = {
    (BOOLEAN, ""): ("boolean",),
    (INTEGER, "int8"): _WHOLE[:1],
    (INTEGER, "int16"): _WHOLE[:2],
    (INTEGER, "int32"): _WHOLE[:3],
    (INTEGER, ""): _WHOLE,
    (NUMBER, "float32"): ("float",),
    (NUMBER, ""): (*_WHOLE, "float", "double"),
    (STRING, ""): ("string",),
    (STRING, DATE): ("date",),
    (STRING, MOMENT): ("timestamp",),
    (STRING, LOCAL_MOMENT): ("timestamp_ntz",),
    (STRING, BASE64): ("binary",),
}
"""What is written into a type without a change."""


def derive(columns: Sequence[Column], title: str, doc: str, *, nullable: bool = True) -> str:
    """Return the schema of some columns, as JSON; it is closed, so that a new column may follow.

    :param title: the name of the record.
    :param nullable: whether columns may be null at all; of a key none may.
    :raises UnfitPartsError: with every column that has no form in JSON Schema.
    """
    return written(object_of(columns, nullable=nullable), title, doc)


def object_of(columns: Sequence[Column], *, nullable: bool = True) -> Object:
    """Return the type of an object of some columns.

    :raises UnfitPartsError: with every column that has no form in JSON Schema.
    """
    problems: list[Problem] = []
    made = _object(columns, "", problems, nullable=nullable)
    if problems:
        raise UnfitPartsError(problems)
    return made


def misfits(columns: Sequence[Column], schema: JsonSchema) -> tuple[Problem, ...]:
    """Return what keeps columns from being written by a schema, each with what to do about it."""
    found = known(schema.type)
    if not isinstance(found, Object):
        return (Problem("", f"is {described(schema.type)}, and a row is an object with fields"),)
    return (*_unchecked(schema), *_object_misfits(columns, found, ""), *_null_misfits(found))


def leaves_out_nulls(kind: JsonType) -> bool:
    """Tell whether a field that is null must be left out: the schema knows no null in its place."""
    return next((path for path, one in _properties(kind, "") if _never_null(one)), None) is not None


def _object(
    columns: Sequence[Column], path: str, problems: list[Problem], *, nullable: bool = True
) -> Object:
    return Object(tuple(_property(one, path, problems, nullable=nullable) for one in columns))


def _property(column: Column, path: str, problems: list[Problem], *, nullable: bool) -> Property:
    below = f"{path}.{column.name}" if path else column.name
    made = _type(column.type, below, problems)
    may_be_null = column.nullable and nullable
    return Property(column.name, Nullable(made) if may_be_null else made, not may_be_null, column.comment)


def _type(kind: SparkType, path: str, problems: list[Problem]) -> JsonType:
    if isinstance(kind, str):
        return _plain(kind, path, problems)
    match kind["type"]:
        case "struct":
            return _object(columns_of(kind), path, problems)
        case "array":
            return ArrayOf(_items(kind["elementType"], f"{path}[]", problems, kind["containsNull"]))
        case "map":
            if kind["keyType"] != "string":
                problems.append(map_not_by_string(kind, path, _LANGUAGE))
            return MapOf(_items(kind["valueType"], f"{path}[]", problems, kind["valueContainsNull"]))
        case other:
            return _plain(str(other), path, problems)


def _items(kind: SparkType, path: str, problems: list[Problem], nullable: Any) -> JsonType:
    made = _type(kind, path, problems)
    return Nullable(made) if nullable else made


def _plain(kind: str, path: str, problems: list[Problem]) -> JsonType:
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[8:-1].split(","))
        return Scalar(NUMBER, DECIMAL, precision, scale)
    if kind not in _PLAIN:
        problems.append(without_form(kind, path, _LANGUAGE))
    return _PLAIN.get(kind, Scalar(STRING))


def _unchecked(schema: JsonSchema) -> Iterator[Problem]:
    for one in schema.unchecked:
        what = f"has {one.keyword} in the schema, which no row is checked by"
        yield Problem(one.where, what, "leave it out of the schema that the sink writes by")


def _object_misfits(columns: Sequence[Column], takes: Object, path: str) -> Iterator[Problem]:
    types = {one.name: one.type for one in takes.properties}
    needed = [one.name for one in takes.properties if one.is_required]
    for column in columns:
        if column.name in types:
            below = f"{path}.{column.name}" if path else column.name
            yield from _misfits(column.type, types[column.name], below)
    yield from unlike_fields(columns, types, needed, path)


def _misfits(kind: SparkType, takes: JsonType, path: str) -> Iterator[Problem]:
    match known(takes):
        case Opaque() as opaque:
            yield Problem(path, f"{opaque.why}, in the schema", "name its type in the schema")
        case Object() as inner if not isinstance(kind, str) and kind["type"] == "struct":
            yield from _object_misfits(columns_of(kind), inner, path)
        case ArrayOf() as array if not isinstance(kind, str) and kind["type"] == "array":
            yield from _misfits(kind["elementType"], array.items, f"{path}[]")
        case MapOf() as map_ if not isinstance(kind, str) and kind["type"] == "map":
            if kind["keyType"] != "string":
                yield map_not_by_string(kind, path, _LANGUAGE)
            yield from _misfits(kind["valueType"], map_.values, f"{path}[]")
        case Scalar() as scalar if _is_taken(kind, scalar):
            return
        case other:
            yield Problem(path, f"is {said(kind)}, and {described(other)} in the schema", _cast(other, path))


def _is_taken(kind: SparkType, takes: Scalar) -> bool:
    if takes.means == DECIMAL:
        return kind == f"decimal({takes.precision},{takes.scale})"
    if (takes.kind, takes.means) == (NUMBER, "") and isinstance(kind, str) and kind.startswith("decimal("):
        return True
    return kind in _TAKES[takes.kind, takes.means]


def _cast(takes: JsonType, path: str) -> str:
    return f"CAST({path} AS {ddl(takes)})" if isinstance(takes, Scalar) else ""


def _null_misfits(takes: Object) -> Iterator[Problem]:
    """Give the fields that must be null where others must be left out: Spark writes all nulls, or none."""
    if not leaves_out_nulls(takes):
        return
    never = next(path for path, one in _properties(takes, "") if _never_null(one))
    for path, one in _properties(takes, ""):
        if one.is_required and one.may_be_null:
            what = f"is required and may be null, while {never} may be left out and never be null"
            yield Problem(path, what, f"let {never} be null in the schema, or do not require {path}")


def _never_null(one: Property) -> bool:
    return not one.is_required and not one.may_be_null


def _properties(kind: JsonType, path: str) -> Iterator[tuple[str, Property]]:
    match known(kind):
        case Object() as found:
            for one in found.properties:
                below = f"{path}.{one.name}" if path else one.name
                yield below, one
                yield from _properties(one.type, below)
        case ArrayOf() as array:
            yield from _properties(array.items, f"{path}[]")
        case MapOf() as map_:
            yield from _properties(map_.values, f"{path}[]")
        case _:
            return
