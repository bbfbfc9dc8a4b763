"""Avro schemas, read strictly: every problem at once, each with its place.

Names are resolved (:mod:`.avro_names`), so that a schema stands by itself; a type inside itself is kept as a
:class:`.avro_types.Named`. Defaults are judged in :mod:`.avro_defaults`.

The rules are those of the Avro specification 1.12, sections *Names*, *Complex Types*, *Logical Types*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.schemas.avro_defaults import unfit_default
from airflow_provider_sinks.core.schemas.avro_names import (
    FULL_NAME,
    NAME,
    NAME_HINT,
    Inlining,
    definitions,
    full_name,
    own_name,
)
from airflow_provider_sinks.core.schemas.avro_types import (
    COMPLEX,
    NONE,
    PRIMITIVES,
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)
from airflow_provider_sinks.core.schemas.too_deep import refusing_what_is_too_deep
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_DEEPEST = 100
_PARTS_MAX = 50_000
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


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Read a schema.

    :param references: the texts of the schemas whose types it names, what they need themselves first.
    :raises UnfitPartsError: with every problem, each named by its place in the schema.
    """
    with refusing_what_is_too_deep():
        return _parsed(text, references)


def _parsed(text: str, references: Iterable[str]) -> AvroSchema:
    reader = _Reader()
    for reference in references:
        reader.refer(_json(reference))
    tree = _json(text)
    found = reader.read(tree, "", "")
    if reader.problems:
        raise UnfitPartsError(reader.problems)
    written = json.dumps(Inlining(reader.trees).written(tree, ""))
    return AvroSchema(written, found, dict(reader.records))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        if re.fullmatch(r"[\w.]+", text.strip()):
            return text.strip()
        raise UnfitPartsError([Problem("", f"is not JSON: {error}", "an Avro schema is JSON")]) from None


@dataclass(frozen=True)
class _Extent:
    """How much a name stands for: who walks a schema meets it again wherever the name stands."""

    parts: int
    height: int


@dataclass
class _Reader:
    problems: list[Problem] = field(default_factory=list)
    known: dict[str, AvroType] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    trees: dict[str, Any] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _extents: dict[str, _Extent] = field(default_factory=dict)
    _parts: int = 0
    _depth: int = 0
    _deepest: int = 0

    def refer(self, tree: Any) -> None:
        """Take the types of a schema that is referred to."""
        self.read(tree, "", "")
        for definition, namespace in definitions(tree):
            self.trees[own_name(definition, namespace)[0]] = (definition, namespace)

    def read(self, tree: Any, namespace: str, path: str) -> AvroType:
        self._depth += 1
        self._count(_Extent(1, 0))
        try:
            return self._read(tree, namespace, path)
        finally:
            self._depth -= 1

    def _count(self, extent: _Extent) -> None:
        self._parts += extent.parts
        self._deepest = max(self._deepest, self._depth + extent.height)
        if self._parts > _PARTS_MAX:
            raise UnfitPartsError([Problem("", f"has more than {_PARTS_MAX:,} parts")])
        if self._deepest > _DEEPEST:
            raise UnfitPartsError([Problem("", f"has more than {_DEEPEST} types inside each other")])

    def _read(self, tree: Any, namespace: str, path: str) -> AvroType:
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
                self._count(self._extents[full])
                return self.known[full]
        return self._wrong(path, f"{name!r} is no type", nearest(name, [*PRIMITIVES, *COMPLEX, *self.known]))

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
        name, inner = own_name(tree, namespace)
        if not FULL_NAME.fullmatch(name):
            self._wrong(path, f"{name!r} is no name in Avro" if name else "has no name", NAME_HINT)
        elif name in self.known or name in self._open:
            self._wrong(path, f"{name!r} is defined twice", "refer to it by its name")
        self._open.append(name)
        begun, outside, self._deepest = self._parts, self._deepest, self._depth
        made = self._made(tree, kind, name, inner, path)
        self._extents[name] = _Extent(self._parts - begun, self._deepest - self._depth)
        self._deepest = max(outside, self._deepest)
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
                    self._wrong(path, f"{symbol!r} is no symbol in Avro", NAME_HINT)
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
                self._wrong(below, f"{name!r} is no name in Avro", NAME_HINT)
            if name in seen:
                self._wrong(below, "stands twice")
            seen.add(name)
            if not isinstance(tree, dict):
                continue
            kind = self.read(tree.get("type"), namespace, below)
            if "default" in tree and (why := unfit_default(tree["default"], kind)):
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


def _kind(one: AvroType) -> str:
    return one.kind if isinstance(one, Primitive) else type(one).__name__.lower()


def _digits(size: int) -> int:
    """Return how many decimal digits fit into so many bytes, for sure."""
    return len(str(2 ** (8 * size - 1) - 1)) - 1
