"""How a format of Spark's is named in the short Python API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack


class SparkFormatKeywords(TypedDict, total=False):
    """What ``spark_format()`` takes beside the format."""

    path: str
    connection: str
    table: str
    options: Mapping[str, str | int | bool]


def spark_format(format: str, **options: Unpack[SparkFormatKeywords]) -> dict[str, Any]:  # noqa: A002  Spark's word
    """Name a format of Spark's, as a target: Spark's own writer writes it, and Spark's own guarantee holds.

    :param format: ``parquet``, ``orc``, ``csv``, ``json``, ``text``, ``jdbc``, ``console``, ``noop``, or any
        other that Spark has installed.
    """
    return {"spark": {"format": format, **options}}
