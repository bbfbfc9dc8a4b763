"""The columns of a table of dead letters, and whether a table has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from airflow_provider_sinks.connectors.table_format.types import Column, SparkType, spark_kind
from airflow_provider_sinks.core.dead_letters.spelling import ROWS_COLUMN
from airflow_provider_sinks.core.decision.facts import Unfit

DEAD_LETTER_COLUMNS: Final[Mapping[str, SparkType]] = {
    "at": "timestamp",
    "sink": "string",
    "error": "string",
    "source_topic": "string",
    "source_partition": "integer",
    "source_offset": "long",
    "key": "binary",
    "value": "binary",
    "error_class": "string",
    "source_timestamp": "timestamp",
    "headers": "string",
    "generation": "long",
    "epoch": "long",
    "spec_digest": "string",
    "replays": "integer",
    ROWS_COLUMN: "string",
}
_MAY_BE_MISSING = frozenset({ROWS_COLUMN})
"""A table that an earlier release made has none of them, and is written without."""


def letter_columns(there: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of dead letters that a table has, in the order in which they are written."""
    found = frozenset(there)
    return tuple(name for name in DEAD_LETTER_COLUMNS if name in found)


def unfit_for_letters(
    columns: Mapping[str, Column], partitioned_by: Iterable[str], drop_partition: str
) -> Unfit | None:
    """Return why a table cannot take dead letters.

    :param partitioned_by: columns.
    :param drop_partition: what to do about such a column; it is followed by the column's name.
    """
    for name, kind in DEAD_LETTER_COLUMNS.items():
        if name in _MAY_BE_MISSING and name not in columns:
            continue
        if name not in columns or columns[name].kind != spark_kind(kind):
            found = f"has no column {name}" if name not in columns else f"has {name} as {columns[name].shown}"
            return Unfit(
                found,
                f"Dead letters have {name} as {spark_kind(kind)}.",
                "Name a table that is not there: the sink makes it.",
            )
    if foreign := [name for name in partitioned_by if name not in DEAD_LETTER_COLUMNS]:
        return Unfit(
            f"is partitioned by {foreign[0]}",
            "Dead letters have no such column.",
            f"{drop_partition} {foreign[0]}",
        )
    required = [c.name for c in columns.values() if c.is_required and c.name not in DEAD_LETTER_COLUMNS]
    if not required:
        return None
    return Unfit(
        f"has column {required[0]}, which takes no null",
        "Dead letters have no such column.",
        f"ALTER TABLE ... ALTER COLUMN {required[0]} DROP NOT NULL",
    )
