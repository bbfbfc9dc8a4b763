"""What Spark holds of a JSON Schema, and what it cannot hold.

>>> from airflow_provider_sinks.core.schemas.json_schema import parse
>>> spark_columns(parse('{"properties": {"at": {"type": "string", "format": "date"}}}'))
(('at', 'date'),)
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.json_types import (
    BASE64,
    DATE,
    DECIMAL,
    LOCAL_MOMENT,
    MOMENT,
    ArrayOf,
    JsonSchema,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Scalar,
    known,
)
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_PLAIN = {"boolean": "boolean", "integer": "bigint", "number": "double", "string": "string"}
_MEANT = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "float32": "float",
    DATE: "date",
    MOMENT: "timestamp",
    LOCAL_MOMENT: "timestamp_ntz",
    BASE64: "binary",
}
_LEAVE_OUT = "leave this field out of the schema that the sink reads by"


def spark_columns(schema: JsonSchema) -> tuple[tuple[str, str], ...]:
    """Return the columns of an object, each with its type as DDL.

    :raises UnfitPartsError: it is no object, or Spark cannot hold it; with every problem.
    """
    demand_holdable(schema)
    found = known(schema.type)
    assert isinstance(found, Object)  # noqa: S101  just demanded
    return tuple((one.name, ddl(one.type)) for one in found.properties)


def demand_holdable(schema: JsonSchema) -> None:
    """Raise :class:`UnfitPartsError` with everything that Spark cannot hold; keys are objects, too."""
    if not isinstance(known(schema.type), Object):
        said = schema.type.why if isinstance(schema.type, Opaque) else "is no object"
        hint = "name its fields by properties"
        raise UnfitPartsError([Problem("", f"{said}, and only an object with fields has columns", hint)])
    if problems := [*_problems(schema.type, "")]:
        raise UnfitPartsError(problems)


def ddl(kind: JsonType) -> str:
    """Return the type of Spark in which it holds values of a type."""
    match kind:
        case Scalar() if kind.means == DECIMAL:
            return f"decimal({kind.precision},{kind.scale})"
        case Scalar():
            return _MEANT.get(kind.means, _PLAIN[kind.kind])
        case ArrayOf():
            return f"array<{ddl(kind.items)}>"
        case MapOf():
            return f"map<string,{ddl(kind.values)}>"
        case Nullable():
            return ddl(kind.type)
        case Object():
            fields = (f"{_quoted(one.name)}: {ddl(one.type)}" for one in kind.properties)
            return f"struct<{','.join(fields)}>"
        case Opaque():
            raise ValueError(kind.why)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _problems(kind: JsonType, path: str) -> Iterator[Problem]:
    match kind:
        case Object():
            seen: set[str] = set()
            for one in kind.properties:
                below = f"{path}.{one.name}" if path else one.name
                if one.name.lower() in seen:
                    yield Problem(below, "is there in another case too, which is one column", _LEAVE_OUT)
                seen.add(one.name.lower())
                yield from _problems(one.type, below)
        case ArrayOf():
            yield from _problems(kind.items, f"{path}[]")
        case MapOf():
            yield from _problems(kind.values, f"{path}[]")
        case Nullable():
            yield from _problems(kind.type, path)
        case Opaque():
            yield Problem(path, kind.why, _LEAVE_OUT)
        case _:
            return
