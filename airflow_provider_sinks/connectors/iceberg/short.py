"""How an Iceberg table is named in the short Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack


class IcebergKeywords(TypedDict, total=False):
    """What ``iceberg()`` takes beside catalog and table."""

    key: str | Sequence[str]
    mode: str
    create: bool
    columns: Sequence[str]
    partition_by: str | Sequence[str]
    properties: Mapping[str, str | int | bool]
    on_schema_change: str


def iceberg(catalog: str, table: str, **options: Unpack[IcebergKeywords]) -> dict[str, Any]:
    """Name an Iceberg table, as a target.

    :param catalog: id of an Airflow connection of type ``iceberg``.
    :param table: ``namespace.table``.
    """
    return {"iceberg": {"catalog": catalog, "table": table, **options}}
