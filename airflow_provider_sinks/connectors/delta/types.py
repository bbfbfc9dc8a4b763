"""Which type of Spark becomes which of Delta. Delta's schema is Spark's own JSON: what fits is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_sinks.connectors.table_format.types import Column, SparkType, spark_kind
from airflow_provider_sinks.core.spec.problems import UnfitError

_PLAIN = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
_DECIMAL = re.compile(r"decimal\(\d+, ?-?\d+\)")
_WHOLE = re.compile(r"decimal\(\d+, ?0\)")
_NO_NAME = re.compile(r"[ ,;{}()\n\t=]")
PARTITIONS = ("string", "tinyint", "smallint", "int", "bigint", "date", "boolean")
"""Types, and decimals of whole numbers, whose values each reader reads from a partition as the same.

A negative decimal with a fraction is written so by delta-rs that it cannot load the table any more.
"""


def columns_of(fields: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """Return the columns of a table."""
    found = {}
    for field in fields:
        is_known = not list(_unknown(field["type"], field["name"]))
        kind = spark_kind(field["type"])
        found[field["name"]] = Column(field["name"], kind if is_known else "", kind, not field["nullable"])
    return found


def required_inside(given: SparkType, path: str) -> Iterator[str]:
    """Give what takes no null inside of a column: no query of Spark can promise that."""
    if isinstance(given, str):
        return
    match given["type"]:
        case "struct":
            for field in given["fields"]:
                name = f"{path}.{field['name']}"
                if not field["nullable"]:
                    yield name
                yield from required_inside(field["type"], name)
        case "array":
            if not given["containsNull"]:
                yield f"{path}.element"
            yield from required_inside(given["elementType"], f"{path}.element")
        case "map":
            if not given["valueContainsNull"]:
                yield f"{path}.value"
            yield from required_inside(given["keyType"], f"{path}.key")
            yield from required_inside(given["valueType"], f"{path}.value")


def created(columns: Mapping[str, SparkType]) -> str:
    """Return the schema of a new table, as JSON.

    :raises UnfitError: Delta has no type for one, or no room for its name.
    """
    fields = [_field(name, _created(kind, name)) for name, kind in columns.items()]
    by_name: dict[str, str] = {}
    for name in columns:
        if _NO_NAME.search(name):
            raise UnfitError(
                f"column {name!r}: Delta takes none of ' ,;{{}}()=' in a name", "rename it with AS"
            )
        if (other := by_name.setdefault(name.lower(), name)) != name:
            raise UnfitError(f"columns {other!r} and {name!r} are one to Delta", "rename one of them with AS")
    return json.dumps({"type": "struct", "fields": fields})


def can_partition(kind: str) -> bool:
    """Whether a column of a type, in the common form, can make partitions."""
    return kind in PARTITIONS or bool(_WHOLE.fullmatch(kind))


def _created(given: SparkType, path: str) -> SparkType:
    if unknown := next(_unknown(given, path), None):
        what = f"column {unknown[0]!r}: Delta has no type for Spark's {unknown[1]}"
        raise UnfitError(what, "CAST it in the query")
    if isinstance(given, str):
        return given
    match given["type"]:
        case "struct":
            fields = [_field(one["name"], _created(one["type"], path)) for one in given["fields"]]
            return {"type": "struct", "fields": fields}
        case "array":
            element = _created(given["elementType"], path)
            return {"type": "array", "elementType": element, "containsNull": True}
    return {
        "type": "map",
        "keyType": _created(given["keyType"], path),
        "valueType": _created(given["valueType"], path),
        "valueContainsNull": True,
    }


def _field(name: str, kind: SparkType) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _unknown(given: SparkType, path: str) -> Iterator[tuple[str, str]]:
    """Give each part of a type that Delta has no type for."""
    if isinstance(given, str):
        if given not in _PLAIN and not _DECIMAL.fullmatch(given):
            yield path, given
        return
    match given["type"]:
        case "struct":
            for field in given["fields"]:
                yield from _unknown(field["type"], f"{path}.{field['name']}")
        case "array":
            yield from _unknown(given["elementType"], f"{path}.element")
        case "map":
            yield from _unknown(given["keyType"], f"{path}.key")
            yield from _unknown(given["valueType"], f"{path}.value")
        case _:
            yield path, spark_kind(given)
