"""Whether a table can take dead letters: each as a whole, whatever its record holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import (
    DEAD_LETTER_COLUMNS,
    FIRST_DEAD_LETTER_COLUMNS,
)
from airflow_provider_sinks.connectors.postgres.types import Column
from airflow_provider_sinks.core.decision.facts import Unfit

_REQUIRED = " NOT NULL"
_WRITTEN = {name: kind for name, kind in DEAD_LETTER_COLUMNS.items() if name != "at"}


def unfit_for_letters(table: str, columns: Mapping[str, Column]) -> Unfit | None:
    """Return why dead letters do not fit into a table, with the SQL that mends it; ``None`` where they do.

    Columns that an earlier release did not have may be missing: letters are written without.

    :param table: with its schema.
    """
    flaws = [*_missing(columns), *_mistyped(columns), *_required(columns)]
    if not flaws:
        return None
    return Unfit(
        "does not take each dead letter as a whole",
        " ".join(f"Column {name} {flaw}." for name, flaw, _ in flaws),
        f"ALTER TABLE {table} {', '.join(change for _, _, change in flaws)};",
    )


def _missing(columns: Mapping[str, Column]) -> Iterator[tuple[str, str, str]]:
    for name in FIRST_DEAD_LETTER_COLUMNS:
        if name not in columns:
            yield name, "is missing", f"ADD {name} {_kind(name)}"


def _mistyped(columns: Mapping[str, Column]) -> Iterator[tuple[str, str, str]]:
    """Compare types: binary ``COPY`` takes bytes for what the column's type says."""
    for name in _WRITTEN:
        kind, column = _kind(name), columns.get(name)
        if column is None or column.base == kind:
            continue
        if kind != "text" or column.exact != "character varying":
            yield name, f"is {column.kind}, and not {kind}", f"ALTER {name} TYPE {kind} USING {name}::{kind}"


def _required(columns: Mapping[str, Column]) -> Iterator[tuple[str, str, str]]:
    """Find what takes no null: a record may have no key, no value, no place.

    A default is for columns that are not written: ``COPY`` gives the others their null.
    """
    for name, column in columns.items():
        if name in _WRITTEN:
            if column.is_not_null and _REQUIRED not in _WRITTEN[name]:
                yield name, "takes no null", f"ALTER {name} DROP NOT NULL"
        elif column.is_required:
            quoted = sql.Identifier(name).as_string(None)
            yield quoted, "takes no null, and has no default", f"ALTER {quoted} DROP NOT NULL"


def _kind(name: str) -> str:
    return _WRITTEN[name].removesuffix(_REQUIRED)
