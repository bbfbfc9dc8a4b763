"""JSON Schemas (draft 4 to 2020-12) as a registry keeps them: what columns can be, and what is checked.

A schema may say much that no column is. Such a place is read as :class:`.json_types.Opaque`, and only who
needs a column there refuses it; keywords by which a value may be wrong and that are checked nowhere are
listed. Types of Kafka Connect (``connect.type``, the title of a decimal) are known, as its JSON Schema
converter has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.json_keywords import (
    count_of,
    is_of,
    kinds_of,
    scalar,
    values_of,
    written_kinds,
)
from airflow_provider_sinks.core.schemas.json_types import (
    INTEGER,
    NUMBER,
    SCALARS,
    ArrayOf,
    Bounds,
    JsonSchema,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Property,
    Scalar,
    Unchecked,
)
from airflow_provider_sinks.core.schemas.json_written import written
from airflow_provider_sinks.core.schemas.too_deep import refusing_what_is_too_deep
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

_DEEPEST = 50
_PARTS_MAX = 20_000
_NOT_CHECKED = (
    "not",
    "if",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "contains",
    "uniqueItems",
    "prefixItems",
    "pattern",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_ANYTHING = "takes anything, and a column has one type"


def parse(text: str, references: Iterable[tuple[str, str]] = ()) -> JsonSchema:
    """Read a schema.

    :param references: the schemas that it refers to: the name by which it does, and the text.
    :raises UnfitPartsError: it is no schema, or refers to what is not there, with every problem.
    """
    with refusing_what_is_too_deep():
        return _parsed(text, references)


def _parsed(text: str, references: Iterable[tuple[str, str]]) -> JsonSchema:
    others = {name: _json(other) for name, other in references}
    tree = _json(text)
    reader = _Reader(others)
    found = reader.read(tree, "", tree)
    if reader.problems:
        raise UnfitPartsError(reader.problems)
    title = str(tree.get("title", "")) if isinstance(tree, dict) else ""
    return JsonSchema(written(found, title), found, title, tuple(dict.fromkeys(reader.unchecked)))


def _json(text: str) -> Any:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise UnfitPartsError([Problem("", f"is not JSON: {error}", "a JSON Schema is JSON")]) from None
    if not isinstance(tree, dict | bool):
        raise UnfitPartsError([Problem("", "is no JSON Schema", "a mapping, such as {type: object}")])
    return tree


@dataclass
class _Reader:
    others: Mapping[str, Any]
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    _open: list[int] = field(default_factory=list)
    _parts: int = 0

    def read(self, tree: Any, path: str, document: Any) -> JsonType:
        """Return what a schema says.

        :param document: in which ``#`` is looked up.
        """
        if isinstance(tree, bool) or tree == {}:
            return Opaque("takes nothing" if tree is False else _ANYTHING)
        if not isinstance(tree, dict):
            return self._wrong(path, "is no schema", "a mapping, such as {type: string}")
        self._parts += 1
        if self._parts > _PARTS_MAX:  # what is referred to many times over is read as often
            raise UnfitPartsError([Problem("", f"has more than {_PARTS_MAX:,} parts")])
        if id(tree) in self._open or len(self._open) > _DEEPEST:
            return Opaque("is inside itself, and a column has an end")
        self._open.append(id(tree))
        try:
            return self._read(tree, path, document)
        finally:
            self._open.pop()

    def _read(self, tree: Mapping[str, Any], path: str, document: Any) -> JsonType:
        if "$ref" in tree:
            return self._referred(tree, path, document)
        for word in ("allOf", "anyOf", "oneOf"):
            if isinstance(tree.get(word), list):
                return self._combined(tree, word, path, document)
        self._note_unchecked(tree, path)
        kinds = kinds_of(tree)
        values = values_of(tree)
        if kinds == {INTEGER, NUMBER}:
            kinds = {NUMBER}
        if unknown := kinds - {*SCALARS, "array", "object"}:
            return self._wrong(path, f"{min(unknown)!r} is no type of JSON Schema", ", ".join(SCALARS))
        if len(kinds) != 1:
            return Opaque(_ANYTHING if not kinds else f"is one of {len(kinds)} types, and a column has one")
        found = self._of_kind(kinds.pop(), tree, path, document)
        allows_null = "null" in written_kinds(tree) or ("type" not in tree and None in (values or ()))
        return Nullable(found) if allows_null and (values is None or None in values) else found

    def _of_kind(self, kind: str, tree: Mapping[str, Any], path: str, document: Any) -> JsonType:
        if kind in ("array", "object") and values_of(tree) is not None:
            self.unchecked.append(Unchecked(path, "const" if "const" in tree else "enum"))
        if kind == "array":
            return self._array(tree, path, document)
        if kind == "object":
            return self._object(tree, path, document)
        return self._scalar(kind, tree, path)

    def _wrong(self, path: str, what: str, hint: str = "") -> Opaque:
        self.problems.append(Problem(path, what, hint))
        return Opaque(what)

    def _note_unchecked(self, tree: Mapping[str, Any], path: str) -> None:
        for keyword in _NOT_CHECKED:
            if keyword in tree and tree[keyword] not in (False, {}, []):
                self.unchecked.append(Unchecked(path, keyword))

    def _referred(self, tree: Mapping[str, Any], path: str, document: Any) -> JsonType:
        name = str(tree["$ref"])
        place, _, inside = name.partition("#")
        whole = self._document(place, document)
        found = _inside(whole, unquote(inside)) if whole is not None else None
        if found is None:
            return self._wrong(path, f"refers to {name!r}, which is not there", "give it by references")
        beside = {key: value for key, value in tree.items() if key != "$ref"}
        if isinstance(found, dict) and _asserts(
            beside
        ):  # without: told by its identity when it is inside itself
            return self.read({**found, **beside}, path, whole)
        return self.read(found, path, whole)

    def _document(self, place: str, document: Any) -> Any:
        """Return the schema of a reference, also where it names a part of it by the name of the whole."""
        if not place or (isinstance(document, dict) and place == document.get("$id")):
            return document
        if place in self.others:
            return self.others[place]
        named = [one for one in self.others.values() if isinstance(one, dict) and one.get("$id") == place]
        return named[0] if named else None

    def _combined(self, tree: Mapping[str, Any], word: str, path: str, document: Any) -> JsonType:
        beside = {key: value for key, value in tree.items() if key != word}
        branches = tree[word]
        nulls = [one for one in branches if isinstance(one, dict) and one.get("type") == "null"]
        others = [one for one in branches if one not in nulls]
        if len(others) != 1 or (word == "allOf" and nulls):
            return Opaque(f"has {word} of {len(others)} types, and a column has one")
        [only] = others
        if _asserts(beside) and isinstance(only, dict):
            only = {**beside, **only}
        found = self.read(only, path, document)
        return Nullable(found) if nulls and not isinstance(found, Nullable | Opaque) else found

    def _array(self, tree: Mapping[str, Any], path: str, document: Any) -> JsonType:
        items = tree.get("items")
        if not isinstance(items, dict):
            return Opaque("is an array of anything, and a column has items of one type")
        bounds = Bounds(shortest=count_of(tree.get("minItems")), longest=count_of(tree.get("maxItems")))
        return ArrayOf(self.read(items, f"{path}[]", document), bounds)

    def _object(self, tree: Mapping[str, Any], path: str, document: Any) -> JsonType:
        properties, more = tree.get("properties"), tree.get("additionalProperties")
        if not properties:
            if isinstance(more, dict) and more:
                return MapOf(self.read(more, f"{path}[]", document))
            return Opaque("is an object of anything, and a column has fields")
        if not isinstance(properties, dict):
            return self._wrong(path, "has properties that are no mapping")
        return Object(tuple(self._properties(tree, properties, path, document)))

    def _properties(
        self, tree: Mapping[str, Any], properties: Mapping[str, Any], path: str, document: Any
    ) -> Iterator[Property]:
        given = tree.get("required")
        required = set(map(str, given)) if isinstance(given, list) else set()
        for name, inner in properties.items():
            below = f"{path}.{name}" if path else name
            yield Property(name, self.read(inner, below, document), name in required)
        for name in sorted(required - set(properties)):
            yield Property(name, Opaque("is required, and has no type in the schema"), is_required=True)

    def _scalar(self, kind: str, tree: Mapping[str, Any], path: str) -> Scalar:
        found = scalar(kind, tree)
        if "multipleOf" in tree and found.bounds.step is None:
            self.unchecked.append(Unchecked(path, "multipleOf"))
        if not all(is_of(value, kind) for value in found.one_of or ()):
            self._wrong(path, f"has values in enum or const that are no {kind}")
        return found


def _inside(document: Any, pointer: str) -> Any:
    """Return what a JSON pointer leads to, or an anchor; ``None`` where there is nothing."""
    if pointer and not pointer.startswith("/"):
        return _anchored(document, pointer)
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(document, dict) or name not in document:
            return None
        document = document[name]
    return document


def _anchored(document: Any, anchor: str) -> Any:
    whole = document if isinstance(document, dict) else {}
    found = whole.get("$defs") or whole.get("definitions")
    named = found.values() if isinstance(found, dict) else ()
    schemas = (one for one in named if isinstance(one, dict))
    return next((one for one in schemas if anchor in (one.get("$anchor"), one.get("$id"))), None)


def _asserts(tree: Mapping[str, Any]) -> bool:
    """Tell whether anything beside a reference says more than words."""
    words = {
        "title",
        "description",
        "default",
        "examples",
        "$comment",
        "$schema",
        "$id",
        "definitions",
        "$defs",
    }
    return bool(tree.keys() - words - {key for key in tree if key.startswith("connect.")})
