"""Avro schemas, read strictly: every problem at once, each with its place.

Names are resolved, so that a schema stands by itself; a type inside itself is kept as a :class:`Named`.

The rules are those of the Avro specification 1.12, sections *Names*, *Complex Types*, *Logical Types*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_COMPLEX = ("record", "enum", "fixed", "array", "map")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_NAME_HINT = "letters, digits and _, and no digit in front"
_INT, _LONG = 2**31, 2**63


@dataclass(frozen=True)
class Logical:
    """What a primitive or fixed type stands for.

    :param precision: digits of a decimal, of them ``scale`` behind the point.
    """

    name: str = ""
    precision: int = 0
    scale: int = 0


NONE = Logical()


@dataclass(frozen=True)
class Primitive:
    """A type without parts."""

    kind: str
    logical: Logical = NONE


@dataclass(frozen=True)
class Fixed:
    """So many bytes."""

    name: str
    size: int
    logical: Logical = NONE


@dataclass(frozen=True)
class Enum:
    """One of some symbols."""

    name: str
    symbols: tuple[str, ...]
    has_default: bool = False


@dataclass(frozen=True)
class Array:
    """Any number of items."""

    items: AvroType


@dataclass(frozen=True)
class Map:
    """Values by text."""

    values: AvroType


@dataclass(frozen=True)
class Union:
    """One of some types."""

    branches: tuple[AvroType, ...]

    @property
    def is_nullable(self) -> bool:
        """Whether null is one of them."""
        return any(isinstance(one, Primitive) and one.kind == "null" for one in self.branches)

    @property
    def others(self) -> tuple[AvroType, ...]:
        """Those that are not null."""
        return tuple(one for one in self.branches if not (isinstance(one, Primitive) and one.kind == "null"))


@dataclass(frozen=True)
class Named:
    """A record inside itself."""

    name: str


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    name: str
    type: AvroType
    has_default: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """Fields in an order."""

    name: str
    fields: tuple[Field, ...] = ()


AvroType: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Named | Record


@dataclass(frozen=True)
class AvroSchema:
    """A schema that stands by itself.

    :param text: as JSON, with what it refers to written into it.
    :param type: what it says.
    :param records: every record by its full name, for :class:`Named`.
    """

    text: str
    type: AvroType
    records: Mapping[str, Record] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The full name of its record; empty where it is none."""
        return self.type.name if isinstance(self.type, Record | Enum | Fixed) else ""

    def resolve(self, kind: AvroType) -> AvroType:
        """Return a type, where a name stands for it what it names."""
        return self.records[kind.name] if isinstance(kind, Named) else kind


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Read a schema.

    :param references: the texts of the schemas whose types it names, what they need themselves first.
    :raises UnfitPartsError: with every problem, each named by its place in the schema.
    """
    reader = _Reader()
    for reference in references:
        reader.refer(_json(reference))
    tree = _json(text)
    found = reader.read(tree, "", "")
    if reader.problems:
        raise UnfitPartsError(reader.problems)
    written = json.dumps(_Inlining(reader.trees).written(tree, ""))
    return AvroSchema(written, found, dict(reader.records))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        if re.fullmatch(r"[\w.]+", text.strip()):
            return text.strip()
        raise UnfitPartsError([Problem("", f"is not JSON: {error}", "an Avro schema is JSON")]) from None


def full_name(name: str, namespace: str) -> str:
    """Return the full name of a name that stands in a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _own_name(tree: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """Return the full name of a definition, and the namespace inside of it."""
    name = full_name(str(tree.get("name", "")), str(tree.get("namespace", namespace)))
    return name, name.rpartition(".")[0]


@dataclass
class _Reader:
    problems: list[Problem] = field(default_factory=list)
    known: dict[str, AvroType] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    trees: dict[str, Any] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def refer(self, tree: Any) -> None:
        """Take the types of a schema that is referred to."""
        self.read(tree, "", "")
        for definition, namespace in definitions(tree):
            self.trees[_own_name(definition, namespace)[0]] = (definition, namespace)

    def read(self, tree: Any, namespace: str, path: str) -> AvroType:
        if isinstance(tree, str):
            return self._by_name(tree, namespace, path)
        if isinstance(tree, list):
            return self._union(tree, namespace, path)
        if isinstance(tree, dict):
            return self._mapping(tree, namespace, path)
        return self._wrong(path, "is no type", "a name, a list or a mapping with the key type")

    def _mapping(self, tree: Mapping[str, Any], namespace: str, path: str) -> AvroType:
        kind = tree.get("type")
        if isinstance(kind, dict | list):
            return self.read(kind, namespace, path)
        if kind in PRIMITIVES:
            return Primitive(str(kind), self._logical(tree, str(kind), None, path))
        if kind in ("array", "map"):
            inner = self.read(tree.get("items" if kind == "array" else "values"), namespace, f"{path}[]")
            return Array(inner) if kind == "array" else Map(inner)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(tree, str(kind), namespace, path)
        return self._by_name(str(kind), namespace, path)

    def _wrong(self, path: str, what: str, hint: str = "") -> Primitive:
        self.problems.append(Problem(path, what, hint))
        return Primitive("null")

    def _by_name(self, name: str, namespace: str, path: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        for full in (full_name(name, namespace), name):
            if full in self._open:
                return Named(full)
            if full in self.known:
                return self.known[full]
        return self._wrong(path, f"{name!r} is no type", nearest(name, [*PRIMITIVES, *_COMPLEX, *self.known]))

    def _union(self, tree: list[Any], namespace: str, path: str) -> AvroType:
        branches = tuple(self.read(one, namespace, path) for one in tree)
        if any(isinstance(one, Union) for one in branches):
            return self._wrong(path, "is a union inside a union", "write one list")
        kinds = [
            one.name if isinstance(one, Record | Enum | Fixed | Named) else _kind(one) for one in branches
        ]
        for twice in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
            self._wrong(path, f"is a union with {twice} twice", "each type may stand once")
        return Union(branches)

    def _definition(self, tree: Mapping[str, Any], kind: str, namespace: str, path: str) -> AvroType:
        name, inner = _own_name(tree, namespace)
        if not _FULL_NAME.fullmatch(name):
            self._wrong(path, f"{name!r} is no name in Avro" if name else "has no name", _NAME_HINT)
        elif name in self.known or name in self._open:
            self._wrong(path, f"{name!r} is defined twice", "refer to it by its name")
        self._open.append(name)
        made = self._made(tree, kind, name, inner, path)
        self._open.pop()
        self.known[name] = made
        if isinstance(made, Record):
            self.records[name] = made
        return made

    def _made(self, tree: Mapping[str, Any], kind: str, name: str, inner: str, path: str) -> AvroType:
        if kind == "enum":
            symbols = tuple(map(str, tree.get("symbols", ())))
            for symbol in symbols:
                if not NAME.fullmatch(symbol):
                    self._wrong(path, f"{symbol!r} is no symbol in Avro", _NAME_HINT)
            if "default" in tree and tree["default"] not in symbols:
                self._wrong(path, f"default {tree['default']!r} is none of its symbols", ", ".join(symbols))
            return Enum(name, symbols, "default" in tree)
        if kind == "fixed":
            size = tree.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                return self._wrong(path, f"size {size!r} is no number of bytes")
            return Fixed(name, size, self._logical(tree, "fixed", size, path))
        return Record(name, tuple(self._fields(tree.get("fields"), inner, path)))

    def _fields(self, trees: Any, namespace: str, path: str) -> Iterator[Field]:
        if not isinstance(trees, list):
            self._wrong(path, "is a record without fields", "fields: []")
            return
        seen: set[str] = set()
        for tree in trees:
            name = str(tree.get("name", "")) if isinstance(tree, dict) else ""
            below = f"{path}.{name}" if path else name
            if not NAME.fullmatch(name):
                self._wrong(below, f"{name!r} is no name in Avro", _NAME_HINT)
            if name in seen:
                self._wrong(below, "stands twice")
            seen.add(name)
            if not isinstance(tree, dict):
                continue
            kind = self.read(tree.get("type"), namespace, below)
            if "default" in tree and (why := self._unfit_default(tree["default"], kind)):
                self._wrong(below, f"default {json.dumps(tree['default'])} does not fit: {why}")
            yield Field(name, kind, "default" in tree, tuple(map(str, tree.get("aliases", ()))))

    def _logical(self, tree: Mapping[str, Any], kind: str, size: int | None, path: str) -> Logical:
        """Return what stands for more; what does not go with the type is ignored, as Avro demands."""
        name = str(tree.get("logicalType", ""))
        if kind not in _LOGICAL.get(name, ()):
            return NONE
        if name != "decimal":
            return Logical(name)
        precision, scale = tree.get("precision"), tree.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
            self._wrong(path, f"is no decimal: precision {precision!r}, scale {scale!r}")
            return NONE
        if size is not None and precision > (most := _digits(size)):
            self._wrong(path, f"{precision} digits do not fit into {size} bytes", f"at most {most}")
        return Logical(name, precision, scale)

    def _unfit_default(self, value: Any, kind: AvroType) -> str:
        """Return why a default is none; a union's is one of its first type."""
        match kind:
            case Union():
                return self._unfit_default(value, kind.branches[0]) if kind.branches else "the union is empty"
            case Primitive() | Fixed() | Enum():
                return _unfit_leaf(value, kind)
            case Array() | Map():
                return self._unfit_items(value, kind)
            case Record():
                return self._unfit_record(value, kind)
            case _:
                return ""

    def _unfit_items(self, value: Any, kind: Array | Map) -> str:
        if isinstance(kind, Array):
            return self._first_unfit(value, kind.items) if isinstance(value, list) else "it is no list"
        is_well = isinstance(value, dict)
        return self._first_unfit(value.values(), kind.values) if is_well else "it is no mapping"

    def _first_unfit(self, values: Iterable[Any], kind: AvroType) -> str:
        return next(filter(None, (self._unfit_default(value, kind) for value in values)), "")

    def _unfit_record(self, value: Any, kind: Record) -> str:
        if not isinstance(value, dict):
            return "it is no mapping"
        missing = [f.name for f in kind.fields if f.name not in value and not f.has_default]
        if missing:
            return f"field {missing[0]} is missing in it"
        found = (self._unfit_default(value[f.name], f.type) for f in kind.fields if f.name in value)
        return next(filter(None, found), "")


_LOGICAL: Mapping[str, tuple[str, ...]] = {
    "decimal": ("bytes", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "uuid": ("string",),
}
"""What each logical type stands on; another one is the plain type, to Spark too."""


def _unfit_leaf(value: Any, kind: Primitive | Fixed | Enum) -> str:
    if isinstance(kind, Primitive):
        return "" if _is_of(value, kind.kind) else f"it is no {kind.kind}"
    if isinstance(kind, Enum):
        return "" if value in kind.symbols else f"it is none of {', '.join(kind.symbols)}"
    is_well = isinstance(value, str) and len(value) == kind.size
    return "" if is_well else f"it is no text of {kind.size} characters"


def _kind(one: AvroType) -> str:
    return one.kind if isinstance(one, Primitive) else type(one).__name__.lower()


def _digits(size: int) -> int:
    """Return how many decimal digits fit into so many bytes, for sure."""
    return len(str(2 ** (8 * size - 1) - 1)) - 1


def _is_of(value: Any, kind: str) -> bool:
    number = not isinstance(value, bool) and isinstance(value, int)
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "int": number and -_INT <= value < _INT,
        "long": number and -_LONG <= value < _LONG,
        "float": number or isinstance(value, float),
        "double": number or isinstance(value, float),
        "bytes": isinstance(value, str),
        "string": isinstance(value, str),
    }[kind]


def definitions(tree: Any, namespace: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    """Give every named type that is defined in a schema, each with the namespace around it."""
    if isinstance(tree, list):
        for one in tree:
            yield from definitions(one, namespace)
    elif isinstance(tree, dict):
        inner = namespace
        if tree.get("type") in ("record", "error", "enum", "fixed"):
            yield tree, namespace
            inner = _own_name(tree, namespace)[1]
        for key in ("type", "items", "values"):
            yield from definitions(tree.get(key), inner)
        for one in tree.get("fields") or ():
            yield from definitions(one.get("type") if isinstance(one, dict) else None, inner)


class _Inlining:
    """Writes what a schema refers to into it, at the first place where it is named."""

    def __init__(self, trees: Mapping[str, tuple[Mapping[str, Any], str]]) -> None:
        self._trees = trees
        self._written: set[str] = set()

    def written(self, tree: Any, namespace: str) -> Any:
        if isinstance(tree, str):
            return self._named(tree, namespace)
        if isinstance(tree, list):
            return [self.written(one, namespace) for one in tree]
        if not isinstance(tree, dict):
            return tree
        inner, made = namespace, dict(tree)
        if tree.get("type") in ("record", "error", "enum", "fixed"):
            name, inner = _own_name(tree, namespace)
            self._written.add(name)
        for key in ("type", "items", "values"):
            if key in made and made[key] not in _COMPLEX:
                made[key] = self.written(made[key], inner)
        if isinstance(made.get("fields"), list):
            made["fields"] = [{**one, "type": self.written(one.get("type"), inner)} for one in made["fields"]]
        return made

    def _named(self, name: str, namespace: str) -> Any:
        for full in (full_name(name, namespace), name):
            if full in self._trees and full not in self._written:
                definition, around = self._trees[full]
                own, inside = _own_name(definition, around)
                absolute = {**definition, "name": own.rpartition(".")[2], "namespace": inside}
                return self.written(absolute, around)
            if full in self._written:
                return full
        return name
