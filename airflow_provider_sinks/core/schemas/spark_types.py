"""What Spark holds of an Avro schema, as its ``spark-avro`` reads it; and what it cannot hold.

>>> from airflow_provider_sinks.core.schemas.avro import parse
>>> spark_columns(parse('{"type":"record","name":"r","fields":[{"name":"at","type":["null","long"]}]}'))
(('at', 'bigint'),)
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.avro_types import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_PLAIN = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
_DECIMAL_DIGITS_MAX = 38
_WIDER = ({"int", "long"}, {"float", "double"})
"""Unions that Spark reads as the wider of the two."""


def spark_columns(schema: AvroSchema) -> tuple[tuple[str, str], ...]:
    """Return the columns of a record, each with its type as DDL.

    :raises UnfitPartsError: it is no record, or Spark cannot hold it; with every problem.
    """
    if not isinstance(schema.type, Record):
        raise UnfitPartsError([Problem("", "is no record, and only a record has columns")])
    demand_holdable(schema)
    return tuple((field.name, ddl(field.type)) for field in schema.type.fields)


def demand_holdable(schema: AvroSchema) -> None:
    """Raise :class:`UnfitPartsError` with everything that Spark cannot hold."""
    if problems := [*_problems(schema.type, "")]:
        raise UnfitPartsError(problems)


def ddl(kind: AvroType) -> str:
    """Return the type of Spark in which it holds values of an Avro type."""
    match kind:
        case Primitive() | Fixed() | Enum():
            return _leaf(kind)
        case Array():
            return f"array<{ddl(kind.items)}>"
        case Map():
            return f"map<string,{ddl(kind.values)}>"
        case Union():
            return "bigint" if _are(kind, _WIDER[0]) else "double" if _are(kind, _WIDER[1]) else _only(kind)
        case Record():
            return f"struct<{','.join(f'`{field.name}`: {ddl(field.type)}' for field in kind.fields)}>"
        case Named():
            raise ValueError(kind.name)


def _leaf(kind: Primitive | Fixed | Enum) -> str:
    if isinstance(kind, Enum):
        return "string"
    plain = "binary" if isinstance(kind, Fixed) else _PLAIN[kind.kind]
    return _decimal(kind.logical) or _LOGICAL.get(kind.logical.name) or plain


def _only(kind: Union) -> str:
    [one] = kind.others
    return ddl(one)


def _decimal(logical: Logical) -> str:
    return f"decimal({logical.precision},{logical.scale})" if logical.name == "decimal" else ""


def _are(kind: Union, names: set[str]) -> bool:
    found = [one.kind for one in kind.others if isinstance(one, Primitive) and not one.logical.name]
    return len(found) == len(kind.others) == len(names) and set(found) == names


def _problems(kind: AvroType, path: str) -> Iterator[Problem]:
    match kind:
        case Record():
            for field in kind.fields:
                yield from _problems(field.type, f"{path}.{field.name}" if path else field.name)
        case Array():
            yield from _problems(kind.items, f"{path}[]")
        case Map():
            yield from _problems(kind.values, f"{path}[]")
        case Union():
            yield from _union_problems(kind, path)
        case Named():
            what = f"is {kind.name} inside itself, and a column has an end"
            yield Problem(path, what, "leave this field out of the schema that the sink reads by")
        case Primitive() if kind.kind == "null":
            yield Problem(path, "is always null, and no type", "leave this field out")
        case Primitive() | Fixed() if kind.logical.precision > _DECIMAL_DIGITS_MAX:
            what = f"has {kind.logical.precision} digits, and Spark has {_DECIMAL_DIGITS_MAX}"
            yield Problem(path, what, "leave this field out of the schema that the sink reads by")
        case _:
            return


def _union_problems(kind: Union, path: str) -> Iterator[Problem]:
    if len(kind.others) == 1:
        yield from _problems(kind.others[0], path)
    elif not any(_are(kind, wider) for wider in _WIDER):
        what = f"is a union of {len(kind.others)} types, and a column has one"
        yield Problem(path, what, "leave this field out of the schema that the sink reads by")
