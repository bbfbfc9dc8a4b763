"""How a Delta table is named in the short Python API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack


class DeltaKeywords(TypedDict, total=False):
    """What ``delta()`` takes beside the path."""

    connection: str
    key: str | Sequence[str]
    mode: str
    create: bool
    columns: Sequence[str]
    partition_by: str | Sequence[str]
    on_schema_change: str


def delta(path: str, **options: Unpack[DeltaKeywords]) -> dict[str, Any]:
    """Name a Delta table, as a target.

    :param path: its folder, or ``s3://bucket/folder``, to which a connection of type ``delta`` leads.
    """
    return {"delta": {"path": path, **options}}
