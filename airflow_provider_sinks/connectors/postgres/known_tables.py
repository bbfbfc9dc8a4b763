"""The tables of a sink as a record names them, and the condition that their names still lead to them.

A table can be swapped by ``RENAME`` and swapped back between two looks of anybody. So the condition stands
in the compare-and-set that ends a writer's transaction (:func:`.progress_table.advance`). Why it is exact:

* What wrote rows holds its table's lock until the transaction ends, so nobody renames or alters it: what
  holds at the end held for every row. What was taken back to a savepoint gave its lock back, and its rows.
* A table that is not locked got no row in this transaction. It may be another one behind the condition.
* The statement locks the progress table before it looks, so it sees every change that was committed by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.identity import Identities


@dataclass(frozen=True)
class KnownTable:
    """A table that a record names.

    :param name: with its schema.
    :param oid: what the name led to.
    """

    name: str
    oid: str

    def condition(self) -> sql.Composed:
        """Return what holds as long as it is that table."""
        return sql.SQL("{} IS NOT DISTINCT FROM {}").format(self._oid_now(), sql.Literal(self.oid))

    def look(self) -> str:
        """Return the query for what the name leads to now."""
        return sql.SQL("SELECT {}").format(self._oid_now()).as_string(None)

    def misfit(self, oid: str | None, sink: str) -> JobFailedError | None:
        """Return the error for what the name leads to now, unless it is that table."""
        if oid == self.oid:
            return None
        return JobFailedError(
            f'table "{self.name}" was replaced while sink "{sink}" ran',
            f"It had oid {self.oid}, and now it has {oid or 'none'}. This transaction is in neither.",
            "The next start decides from its progress what can be done; renamed back, it goes on.",
        )

    def _oid_now(self) -> sql.Composed:
        name = sql.Literal(identifier(self.name).as_string(None))
        return sql.SQL("to_regclass({})::oid::text").format(name)


def known_tables(identities: Identities) -> Iterator[KnownTable]:
    """Give the tables that a record names: all but its source."""
    for table in (identities.data, identities.progress, identities.dead_letter):
        if table is not None:
            yield KnownTable(table.name, table.id)


def conditions(tables: Iterable[KnownTable]) -> sql.Composed:
    """Return what holds as long as they are all what they were."""
    return sql.SQL(" AND ").join(table.condition() for table in tables)


def changed_for_a_moment(sink: str) -> JobFailedError:
    """Return the error for a table that was another one at the end of an epoch, and is not any more."""
    return JobFailedError(
        f'a table of sink "{sink}" was another one for a moment',
        "It was altered or swapped, and is what it was again. This transaction is not in it.",
        "A retry goes on where this stopped.",
    )
