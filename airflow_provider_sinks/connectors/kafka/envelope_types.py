"""What Debezium's envelope is made of: its fields and their types, from the columns of a query. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_sinks.core.schemas.derived import Column, SparkType
from airflow_provider_sinks.core.spec.source import DELETED_FIELD

BEFORE, AFTER, SOURCE, OPERATION, TIME_MS = "before", "after", "source", "op", "ts_ms"
STATE, DELETE = "r", "d"
"""What a message says: the state of a row as it was read, or that the row is gone. A sink that keeps no rows
knows neither that one is new (``c``) nor that it was there before (``u``)."""
CONNECTOR = "airflow-provider-sinks"

_SOURCE: tuple[tuple[str, str, bool], ...] = (
    ("connector", "string", False),
    ("name", "string", False),
    (TIME_MS, "long", True),
    ("topic", "string", False),
    ("partition", "integer", True),
    ("offset", "long", True),
)
"""The fields of where a row comes from, with their types, and whether they may be null."""


def enveloped(columns: Sequence[Column], *, marks_deletes: bool) -> tuple[Column, ...]:
    """Return the fields of the envelope.

    :param columns: of the query.
    :param marks_deletes: whether each row says if it is a delete.
    """
    row = [_field(one.name, one.type, nullable=True, comment=one.comment) for one in columns]
    row += [_field(DELETED_FIELD, "string", nullable=True)] if marks_deletes else []
    source = [_field(name, kind, nullable=nullable) for name, kind, nullable in _SOURCE]
    return (
        Column(BEFORE, {"type": "struct", "fields": row}),
        Column(AFTER, {"type": "struct", "fields": row}),
        Column(SOURCE, {"type": "struct", "fields": source}, nullable=False),
        Column(OPERATION, "string", nullable=False),
        Column(TIME_MS, "long"),
    )


def _field(name: str, kind: SparkType, *, nullable: bool, comment: str = "") -> dict[str, Any]:
    metadata = {"comment": comment} if comment else {}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}
