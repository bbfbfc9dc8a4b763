"""The schema that Kafka Connect's JSON has in each message, from what a JSON Schema says of the same columns.

A moment is text of Debezium's ``ZonedTimestamp``, and one without a zone a number of Debezium's
``MicroTimestamp``: Connect's own ``Timestamp`` has milliseconds, and would cut what Spark has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sinks.core.schemas.json_types import (
    BASE64,
    BOOLEAN,
    DATE,
    DECIMAL,
    DECIMAL_TITLE,
    INTEGER,
    LOCAL_MOMENT,
    MOMENT,
    NUMBER,
    STRING,
    ArrayOf,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Scalar,
    known,
)

_SCALARS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (BOOLEAN, ""): {"type": "boolean"},
    (INTEGER, "int8"): {"type": "int8"},
    (INTEGER, "int16"): {"type": "int16"},
    (INTEGER, "int32"): {"type": "int32"},
    (INTEGER, ""): {"type": "int64"},
    (NUMBER, "float32"): {"type": "float"},
    (NUMBER, ""): {"type": "double"},
    (STRING, ""): {"type": "string"},
    (STRING, BASE64): {"type": "bytes"},
    (STRING, DATE): {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
    (STRING, MOMENT): {"type": "string", "name": "io.debezium.time.ZonedTimestamp", "version": 1},
    (STRING, LOCAL_MOMENT): {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
}


def connect_schema(kind: Object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of an object that is never null.

    :param kind: what was made of columns (:func:`.json_derived.object_of`).
    :param names: of the structs that have one, by the fields that have them; the object itself is ``""``.
    """
    fields = [{**_schema(one.type, names.get(one.name, "")), "field": one.name} for one in kind.properties]
    return {"type": "struct", "fields": fields, "optional": False, "name": names[""]}


def _schema(kind: JsonType, name: str = "") -> dict[str, Any]:
    return {**_plain(known(kind), name), "optional": isinstance(kind, Nullable)}


def _plain(kind: JsonType, name: str) -> dict[str, Any]:
    match kind:
        case Object():
            fields = [{**_schema(one.type), "field": one.name} for one in kind.properties]
            return {"type": "struct", "fields": fields, **({"name": name} if name else {})}
        case ArrayOf():
            return {"type": "array", "items": _schema(kind.items)}
        case MapOf():
            return {"type": "map", "keys": _schema(Scalar(STRING)), "values": _schema(kind.values)}
        case Scalar() if kind.means == DECIMAL:
            parameters = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
            return {"type": "bytes", "name": DECIMAL_TITLE, "version": 1, "parameters": parameters}
        case Scalar():
            return dict(_SCALARS[kind.kind, kind.means])
        case other:
            raise TypeError(other)
