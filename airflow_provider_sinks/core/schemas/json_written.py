"""A JSON Schema as text, from what it says: what is made of columns, and what stands by itself."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_sinks.core.schemas.json_types import (
    BASE64,
    DECIMAL,
    DECIMAL_TITLE,
    ArrayOf,
    Bounds,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Property,
    Scalar,
)

DRAFT = "http://json-schema.org/draft-07/schema#"
_KEYWORDS = {
    "least": "minimum",
    "most": "maximum",
    "more_than": "exclusiveMinimum",
    "less_than": "exclusiveMaximum",
    "step": "multipleOf",
}


def written(kind: JsonType, title: str = "", doc: str = "") -> str:
    """Return a schema as JSON."""
    named = {"title": title, "description": doc}
    given = {word: text for word, text in named.items() if text}
    return json.dumps({"$schema": DRAFT, **given, **tree(kind)})


def tree(kind: JsonType) -> dict[str, Any]:
    """Return a type as JSON Schema has it."""
    match kind:
        case Scalar():
            return _scalar(kind)
        case ArrayOf():
            return {"type": "array", "items": tree(kind.items), **_sizes(kind.bounds, "Items")}
        case MapOf():
            return {"type": "object", "additionalProperties": tree(kind.values)}
        case Nullable():
            return {"oneOf": [{"type": "null"}, tree(kind.type)]}
        case Object():
            required = [one.name for one in kind.properties if one.is_required]
            return {
                "type": "object",
                "properties": {one.name: _property(one) for one in kind.properties},
                **({"required": required} if required else {}),
                "additionalProperties": False,
            }
        case Opaque():
            return {}


def _property(one: Property) -> dict[str, Any]:
    return {**tree(one.type), **({"description": one.doc} if one.doc else {})}


def _scalar(kind: Scalar) -> dict[str, Any]:
    values = {} if kind.one_of is None else {"enum": list(kind.one_of)}
    numbers = {
        word: getattr(kind.bounds, name)
        for name, word in _KEYWORDS.items()
        if getattr(kind.bounds, name) is not None
    }
    return {"type": kind.kind, **_meaning(kind), **values, **numbers, **_sizes(kind.bounds, "Length")}


def _meaning(kind: Scalar) -> dict[str, Any]:
    if kind.means == BASE64:
        return {"contentEncoding": "base64", "connect.type": "bytes"}
    if kind.means == DECIMAL:
        digits = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        return {
            "title": DECIMAL_TITLE,
            "connect.type": "bytes",
            "connect.parameters": digits,
        }
    if not kind.means:
        return {}
    return {"format" if kind.kind == "string" else "connect.type": kind.means}


def _sizes(bounds: Bounds, of: str) -> dict[str, int]:
    given = {f"min{of}": bounds.shortest, f"max{of}": bounds.longest}
    return {word: value for word, value in given.items() if value is not None}
