"""The tables of a sink as its run knows them, and the condition that they are still the same.

A table can be altered, or swapped by ``RENAME`` and swapped back, between two looks of anybody. So the
condition stands in the compare-and-set that ends a writer's transaction (:func:`.progress_table.advance`).
Why it is exact:

* What wrote rows holds its table's lock until the transaction ends, so nobody renames or alters it: what
  holds at the end held for every row. What was taken back to a savepoint gave its lock back, and its rows.
* A table that is not locked got no row in this transaction. It may be another one behind the condition.
* The statement locks the progress table before it looks, so it sees every change that was committed by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.identity import Identities

MARK = "concat_ws(' ', a.atttypid, a.atttypmod, a.attcollation, a.attidentity, a.attgenerated)"
"""In SQL, what a column of ``pg_attribute`` is: where it is another one, the same bytes are another value."""
BEHIND = """
    behind AS (
        SELECT a.atttypid AS oid
        UNION ALL SELECT d.typbasetype FROM behind b JOIN pg_type d ON d.oid = b.oid WHERE d.typtype = 'd')"""
"""In SQL, a recursive query for the type of a column of ``pg_attribute``, and for what its domain is of."""
REQUIRED = f"""(
    NOT a.atthasdef AND a.attidentity = '' AND (
        a.attnotnull OR EXISTS (
            WITH RECURSIVE {BEHIND} SELECT FROM behind b JOIN pg_type d ON d.oid = b.oid WHERE d.typnotnull))
    AND NOT EXISTS (SELECT FROM pg_type d WHERE d.oid = a.atttypid AND d.typdefault IS NOT NULL))"""  # noqa: S608  our own words
"""In SQL, whether each row must give a column: it or its domain takes no null, and neither has a default."""
_SHAPE = """
    SELECT jsonb_object_agg(a.attname, {mark}) FROM pg_attribute a
    WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attname = ANY({names}) OR {required})"""

Shape = Mapping[str, str]
"""The columns of a table that are written, with their marks."""


@dataclass(frozen=True)
class KnownTable:
    """A table that a record names.

    :param name: with its schema.
    :param oid: what the name led to.
    :param shape: of the columns that the run writes, as it compared them with its query; empty for progress.
    """

    name: str
    oid: str
    shape: Shape = field(default_factory=dict)

    def condition(self) -> sql.Composed:
        """Return what holds as long as it is that table, and was not altered."""
        is_same = sql.SQL("{} IS NOT DISTINCT FROM {}").format(self._oid_now(), sql.Literal(self.oid))
        if not self.shape:
            return is_same
        shape = sql.Literal(json.dumps(self.shape, ensure_ascii=False))
        return sql.SQL("{} AND ({}) = {}::jsonb").format(is_same, self._shape_now(), shape)

    def look(self) -> str:
        """Return the query for what :meth:`misfit` judges."""
        return sql.SQL("SELECT {}, ({})::text").format(self._oid_now(), self._shape_now()).as_string(None)

    def misfit(self, oid: str | None, shape: str | None, sink: str) -> JobFailedError | None:
        """Return the error for what the name leads to now, unless it is that table as it was."""
        if oid != self.oid:
            return JobFailedError(
                f'table "{self.name}" was replaced while sink "{sink}" ran',
                f"It had oid {self.oid}, and now it has {oid or 'none'}. This transaction is in neither.",
                "The next start decides from its progress what can be done; renamed back, it goes on.",
            )
        if not self.shape or (why := _difference(self.shape, json.loads(shape or "{}"))) is None:
            return None
        return JobFailedError(
            f'table "{self.name}" was altered while sink "{sink}" ran',
            why,
            "The next start compares the query with the table as it is.",
        )

    def _oid_now(self) -> sql.Composed:
        return sql.SQL("{}::oid::text").format(self._regclass())

    def _shape_now(self) -> sql.Composed:
        """Return the query for the columns that are written, and those that must be."""
        return sql.SQL(_SHAPE).format(
            mark=sql.SQL(MARK),
            required=sql.SQL(REQUIRED),
            table=self._regclass(),
            names=sql.Literal(list(self.shape)),
        )

    def _regclass(self) -> sql.Composed:
        return sql.SQL("to_regclass({})").format(sql.Literal(identifier(self.name).as_string(None)))


def _difference(before: Shape, now: Shape) -> str | None:
    for name in before:
        if before[name] != now.get(name):
            return f"Column {name!r} is " + ("another one." if name in now else "gone.")
    added = next((name for name in now if name not in before), None)
    return None if added is None else f"Column {added!r} takes no null, has no default, and is not written."


def known_tables(identities: Identities, shapes: Mapping[str, Shape]) -> Iterator[KnownTable]:
    """Give the tables that a record names: all but its source.

    :param shapes: of the tables that rows are copied into, by name.
    """
    for table in (identities.data, identities.progress, identities.dead_letter):
        if table is not None:
            yield KnownTable(table.name, table.id, shapes.get(table.name, {}))


def changed_for_a_moment(sink: str) -> JobFailedError:
    """Return the error for a table that was another one at the end of an epoch, and is not any more."""
    return JobFailedError(
        f'a table of sink "{sink}" was another one for a moment',
        "It was altered or swapped, and is what it was again. This transaction is not in it.",
        "A retry goes on where this stopped.",
    )
