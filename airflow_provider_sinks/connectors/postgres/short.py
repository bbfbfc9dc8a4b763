"""How a table is named in the short Python API, as a target or to join with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from airflow_provider_sinks.core.spec.build import Every


class PostgresKeywords(TypedDict, total=False):
    """What ``postgres()`` takes beside connection and table: as a lookup, as a target, then as both."""

    refresh: Every
    max_bytes: int

    key: str | Sequence[str]
    mode: str
    create: bool
    tombstones: str
    progress: str
    on_schema_change: str

    columns: Sequence[str]


def postgres(connection: str, table: str, **options: Unpack[PostgresKeywords]) -> dict[str, Any]:
    """Name a Postgres table, as a target or to join with.

    :param connection: id of an Airflow connection of type ``postgres``.
    :param table: ``schema.table``.
    """
    return {"postgres": {"connection": connection, "table": table, **options}}
