"""A Protobuf message made of the columns of a query, and whether columns fit a message that is there already.

As in :mod:`.derived`: a type either has exactly one form or is refused with the cast to write. What tells
fields apart is their number, so a field keeps the one that the newest schema of its subject gives it; what is
new gets one that nobody has had, and what is gone is reserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.derived import (
    Column,
    SparkType,
    columns_of,
    said,
    unlike_fields,
    without_form,
)
from airflow_provider_sinks.core.schemas.protobuf_compatibility import described
from airflow_provider_sinks.core.schemas.protobuf_spark import ddl
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

_LANGUAGE = "Protobuf"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMESTAMP = ".google.protobuf.Timestamp"
_PLAIN = {
    "boolean": "bool",
    "byte": "int32",
    "short": "int32",
    "integer": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "timestamp": _TIMESTAMP,
}
_KEYS = ("boolean", "byte", "short", "integer", "long", "string")
_SMALL = ("byte", "short", "integer")
_TAKES = {
    "bool": ("boolean",),
    "float": ("float",),
    "double": ("double", "float"),
    "string": ("string",),
    "bytes": ("binary",),
    **dict.fromkeys(INT32, _SMALL),
    **dict.fromkeys(INT64, (*_SMALL, "long")),
    **dict.fromkeys(UINT32, (*_SMALL, "long")),
    **dict.fromkeys(UINT64, (*_SMALL, "long", "decimal(20,0)")),
}
"""What is written into a scalar without a change; of an unsigned one each value is judged."""
_RESERVED_BY_PROTOBUF = range(19_000, 20_000)


def derive(
    columns: Sequence[Column],
    record: str,
    doc: str,
    *,
    nullable: bool = True,
    before: ProtobufSchema | None = None,
) -> str:
    """Return a file with one message of some columns.

    :param record: the full name of the message.
    :param nullable: whether columns may be null at all; of a key none may.
    :param before: what the subject has now, whose numbers are kept.
    :raises UnfitPartsError: with every column that has no form in Protobuf.
    """
    package, _, name = record.rpartition(".")
    making = _Making()
    known = before if before is not None and before.name == record else None
    reserved = known.reserved if known is not None else ((), ())
    past = known.type if known is not None else None
    lines = making.message(columns, name, "", past, reserved, nullable=nullable)
    if making.problems:
        raise UnfitPartsError(making.problems)
    head = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
    imports = ['import "google/protobuf/timestamp.proto";'] if making.has_moments else []
    return "\n".join([*head, "", *[*imports, ""][: 2 * len(imports)], *_comment(doc), *lines, ""])


def misfits(columns: Sequence[Column], schema: ProtobufSchema) -> tuple[Problem, ...]:
    """Return what keeps columns from being written by a schema, each with the cast to write."""
    return tuple(_message_misfits(columns, schema.type, ""))


@dataclass
class _Making:
    problems: list[Problem] = field(default_factory=list)
    has_moments: bool = False

    def message(
        self,
        columns: Sequence[Column],
        name: str,
        path: str,
        past: Message | None,
        reserved: tuple[tuple[str, ...], tuple[tuple[int, int], ...]] = ((), ()),
        *,
        nullable: bool = True,
    ) -> list[str]:
        """Return the lines of a message.

        :param past: what it was in the schema before.
        """
        numbers = _numbers(columns, past, reserved[1])
        taken = {one.name for one in columns}
        inner: list[str] = []
        lines: list[str] = []
        for column in columns:
            below = f"{path}.{column.name}" if path else column.name
            was = _field_type(past, column.name)
            kind, made = self._type(column.type, below, taken, was)
            inner += made
            may_be_null = column.nullable and nullable and not kind.startswith(("repeated", "map<"))
            optional = "optional " if may_be_null and not made and kind != _TIMESTAMP else ""
            lines += [*_comment(column.comment), f"{optional}{kind} {column.name} = {numbers[column.name]};"]
            if not _NAME.fullmatch(column.name):
                hint = f"name it otherwise, such as AS {_renamed(column.name)}"
                self.problems.append(Problem(below, f"{column.name!r} is no name in {_LANGUAGE}", hint))
        gone = _gone(columns, past, reserved)
        return [f"message {name} {{", *_indented([*gone, *lines, *inner]), "}"]

    def _type(
        self, kind: SparkType, path: str, taken: set[str], was: ProtobufType | None
    ) -> tuple[str, list[str]]:
        """Return the name of a column's type, and the message that it needs."""
        if isinstance(kind, str) or kind["type"] == "struct":
            return self._single(kind, path, taken, was)
        match kind["type"]:
            case "array":
                before = was.items if isinstance(was, Repeated) else None
                item, made = self._single(kind["elementType"], f"{path}[]", taken, before)
                return f"repeated {item}", made
            case "map":
                before = was.values if isinstance(was, MapOf) else None
                if kind["keyType"] not in _KEYS:
                    what = (
                        f"is a map by {said(kind['keyType'])}, and {_LANGUAGE} has maps by text and integers"
                    )
                    self.problems.append(Problem(path, what, f"CAST({path} AS map<string, ...>)"))
                value, made = self._single(kind["valueType"], f"{path}[]", taken, before)
                return f"map<{_PLAIN.get(str(kind['keyType']), 'string')}, {value}>", made
            case other:
                self.problems.append(without_form(str(other), path, _LANGUAGE))
                return "string", []

    def _single(
        self, kind: SparkType, path: str, taken: set[str], was: ProtobufType | None
    ) -> tuple[str, list[str]]:
        if isinstance(kind, str):
            return self._plain(kind, path), []
        if kind["type"] == "struct":
            name = _free_name(path, taken)
            past = was if isinstance(was, Message) else None
            return name, self.message(columns_of(kind), name, path, past)
        what = f"is {said(kind)} inside an array or a map, which {_LANGUAGE} has not"
        self.problems.append(Problem(path, what, "put a struct around it: named_struct('items', ...)"))
        return "string", []

    def _plain(self, kind: str, path: str) -> str:
        self.has_moments |= kind == "timestamp"
        if kind not in _PLAIN:
            self.problems.append(without_form(kind, path, _LANGUAGE))
        return _PLAIN.get(kind, "string")


def _numbers(
    columns: Sequence[Column], past: Message | None, reserved: Sequence[tuple[int, int]]
) -> dict[str, int]:
    """Return the number of each field: as it was, or the next one that nobody has had."""
    known = {one.name: one.number for one in past.fields} if past is not None else {}
    last = max([*known.values(), *(end for _, end in reserved)], default=0)
    numbers = {}
    for column in columns:
        if column.name not in known:
            last += 1
            last = _RESERVED_BY_PROTOBUF.stop if last in _RESERVED_BY_PROTOBUF else last
        numbers[column.name] = known.get(column.name, last)
    return numbers


def _gone(
    columns: Sequence[Column],
    past: Message | None,
    reserved: tuple[tuple[str, ...], tuple[tuple[int, int], ...]],
) -> list[str]:
    """Return the statements that keep what is gone from being used again."""
    there = {one.name for one in columns}
    fields = past.fields if past is not None else ()
    names = sorted({*reserved[0], *(one.name for one in fields)} - there)
    numbers = sorted({*reserved[1], *((one.number, one.number) for one in fields if one.name not in there)})
    ranges = ", ".join(str(start) if start == end else f"{start} to {end}" for start, end in numbers)
    quoted = ", ".join(f'"{name}"' for name in names)
    return [*([f"reserved {ranges};"] if ranges else []), *([f"reserved {quoted};"] if quoted else [])]


def _field_type(past: Message | None, name: str) -> ProtobufType | None:
    fields = past.fields if past is not None else ()
    return next((one.type for one in fields if one.name == name), None)


def _free_name(path: str, taken: set[str]) -> str:
    """Return a name for the message of a column: a field and a message cannot have the same one."""
    last = path.rpartition(".")[2].removesuffix("[]")
    name = "".join(part[:1].upper() + part[1:] for part in _renamed(last).split("_")) or "Part"
    while name in taken or not name[0].isalpha():
        name = f"{name}_" if name[0].isalpha() else f"Part{name}"
    taken.add(name)
    return name


def _renamed(name: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9_]", "_", name) or "column"
    return kept if _NAME.fullmatch(kept) else f"_{kept}"


def _comment(text: str) -> list[str]:
    return [f"// {line}" for line in text.splitlines()]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _message_misfits(columns: Sequence[Column], takes: Message, path: str) -> Iterator[Problem]:
    types = {one.name: one.type for one in takes.fields}
    needed = [one.name for one in takes.fields if one.is_required]
    for column in columns:
        if column.name in types:
            below = f"{path}.{column.name}" if path else column.name
            yield from _misfits(column.type, types[column.name], below)
    yield from unlike_fields(columns, types, needed, path)


def _misfits(kind: SparkType, takes: ProtobufType, path: str) -> Iterator[Problem]:
    match takes:
        case Named():
            yield Problem(
                path, f"is {takes.name} inside itself, and a column has an end", f"leave {path} out"
            )
        case Message() if not isinstance(kind, str) and kind["type"] == "struct":
            yield from _message_misfits(columns_of(kind), takes, path)
        case Repeated() if not isinstance(kind, str) and kind["type"] == "array":
            yield from _misfits(kind["elementType"], takes.items, f"{path}[]")
        case MapOf() if not isinstance(kind, str) and kind["type"] == "map":
            if kind["keyType"] not in _TAKES[takes.keys.kind]:
                what = f"is a map by {said(kind['keyType'])}, and by {takes.keys.kind} in the schema"
                yield Problem(path, what, f"CAST({path} AS {ddl(takes)})")
            yield from _misfits(kind["valueType"], takes.values, f"{path}[]")
        case Scalar() | Enum() | Moment() if _is_taken(kind, takes):
            return
        case _:
            yield Problem(path, f"is {said(kind)}, and {described(takes)} in the schema", _cast(takes, path))


def _is_taken(kind: SparkType, takes: Scalar | Enum | Moment) -> bool:
    match takes:
        case Enum():
            return kind == "string"
        case Moment():
            return kind == "timestamp"
        case Scalar():
            return kind in _TAKES[takes.kind]


def _cast(takes: ProtobufType, path: str) -> str:
    return f"CAST({path} AS {ddl(takes)})" if isinstance(takes, Scalar | Moment | Enum) else ""
