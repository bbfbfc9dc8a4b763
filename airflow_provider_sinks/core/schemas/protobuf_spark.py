"""What Spark holds of a Protobuf schema, and what it cannot hold.

A field that has no presence is never null: where it is not there, it has its default, as Protobuf reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.protobuf_types import (
    INT32,
    INT64,
    UINT32,
    UINT64,
    Enum,
    MapOf,
    Message,
    Moment,
    Named,
    ProtobufSchema,
    ProtobufType,
    Repeated,
    Scalar,
)
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_PLAIN = {
    "double": "double",
    "float": "float",
    "bool": "boolean",
    "string": "string",
    "bytes": "binary",
    **dict.fromkeys(INT32, "int"),
    **dict.fromkeys(INT64, "bigint"),
    **dict.fromkeys(UINT32, "bigint"),
    **dict.fromkeys(UINT64, "decimal(20,0)"),
}
_LEAVE_OUT = "leave this field out of the schema that the sink reads by"


def spark_columns(schema: ProtobufSchema) -> tuple[tuple[str, str], ...]:
    """Return the columns of a message, each with its type as DDL.

    :raises UnfitPartsError: Spark cannot hold it; with every problem.
    """
    demand_holdable(schema)
    return tuple((one.name, ddl(one.type)) for one in schema.type.fields)


def demand_holdable(schema: ProtobufSchema) -> None:
    """Raise :class:`UnfitPartsError` with everything that Spark cannot hold."""
    if problems := [*_problems(schema.type, "")]:
        raise UnfitPartsError(problems)


def ddl(kind: ProtobufType) -> str:
    """Return the type of Spark in which it holds values of a type."""
    match kind:
        case Scalar():
            return _PLAIN[kind.kind]
        case Enum():
            return "string"
        case Moment():
            return "timestamp"
        case Repeated():
            return f"array<{ddl(kind.items)}>"
        case MapOf():
            return f"map<{ddl(kind.keys)},{ddl(kind.values)}>"
        case Message():
            return f"struct<{','.join(f'`{one.name}`: {ddl(one.type)}' for one in kind.fields)}>"
        case Named():
            raise ValueError(kind.name)


def _problems(kind: ProtobufType, path: str) -> Iterator[Problem]:
    match kind:
        case Message() if not kind.fields:
            yield Problem(path, f"is {kind.name}, which has no fields", _LEAVE_OUT)
        case Message():
            seen: set[str] = set()
            for one in kind.fields:
                below = f"{path}.{one.name}" if path else one.name
                if one.name.lower() in seen:
                    yield Problem(below, "is there in another case too, which is one column", _LEAVE_OUT)
                seen.add(one.name.lower())
                yield from _problems(one.type, below)
        case Repeated(items=inner) | MapOf(values=inner):
            yield from _problems(inner, f"{path}[]")
        case Named():
            yield Problem(path, f"is {kind.name} inside itself, and a column has an end", _LEAVE_OUT)
        case _:
            return
