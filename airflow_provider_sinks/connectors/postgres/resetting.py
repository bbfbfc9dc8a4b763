"""How a reset empties a table, or drops it: only the one that was looked at, while its run holds the sink.

A reset may stand still behind its fence, until the same command was run again to its end and the sink has
committed rows. So whose the sink is, which table it is and what becomes of it are one transaction:

* It locks the driver's row first, as an announcement does. Whoever takes the sink waits for that row, so the
  run that is found there is in force until the table is emptied or dropped.
* The row of a progress table that is dropped itself is not locked but its table is, so that nobody waits for
  one of the two and has the other.
* No row is left where a drop has removed the progress before. Then nobody can commit; whoever makes the row
  anew can not, before the table is free again. So it is asked once more behind the table's lock.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.progress_table import Place
from airflow_provider_sinks.connectors.postgres.reached import Reached, overtaken
from airflow_provider_sinks.connectors.postgres.session import Connection
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.record import DRIVER


def reset_table(
    connection: Connection, place: Place, run: str, known: Reached, step: EmptyOutput | DeleteOutput
) -> None:
    """Empty or drop a table in one transaction, locked so that it stays the one that is compared.

    :param known: how far this run knows the rows of its progress to be.
    :raises FencedError: a newer run holds the sink.
    :raises RefusedError: an older one does, it is another table, or something else depends on it.
    """
    table = identifier(step.facts.name)
    with connection.transaction():
        if step.facts.name != place.table:
            _lock_driver(connection, place)
        try:
            with connection.transaction():
                connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(table))
        except psycopg.errors.UndefinedTable:
            return
        _demand_held(connection, place, run, known, may_be_gone=isinstance(step, DeleteOutput))
        _demand_looked_at(connection, step)
        act = "TRUNCATE {}" if isinstance(step, EmptyOutput) else "DROP TABLE {}"
        try:
            connection.execute(sql.SQL(act).format(table))
        except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.FeatureNotSupported) as error:
            raise _needed_by_others(step, error) from error


def _lock_driver(connection: Connection, place: Place) -> None:
    """Let nobody take the sink until the transaction ends."""
    query = "SELECT FROM {table} WHERE sink = {sink} AND writer = {driver} FOR UPDATE"
    if _is_there(connection, place.table):
        connection.execute(place.statement(query, driver=DRIVER))


def _demand_held(
    connection: Connection, place: Place, run: str, known: Reached, *, may_be_gone: bool
) -> None:
    """See that a run holds the sink, or that nobody does any more.

    :param may_be_gone: whether the latter will do.
    """
    found = None
    if _is_there(connection, place.table):
        found = progress_table.who_is_in_force(connection, place)
    if (found is None and not may_be_gone) or (found is not None and found[0] != run):
        raise overtaken(place.sink, run, known, found)


def _demand_looked_at(connection: Connection, step: EmptyOutput | DeleteOutput) -> None:
    name = identifier(step.facts.name).as_string(connection)
    found = connection.execute("SELECT to_regclass(%s)::oid::text", [name]).fetchone()
    if not found or found[0] != step.facts.id:
        raise RefusedError(
            f'table "{step.facts.name}" is not the one any more that was looked at',
            f"It had oid {step.facts.id}, now it has {found[0] if found else 'none'}.",
            "Somebody else changes it at this moment; look again before anything is deleted.",
        )


def _needed_by_others(step: EmptyOutput | DeleteOutput, error: psycopg.Error) -> RefusedError:
    act = "emptied" if isinstance(step, EmptyOutput) else "dropped"
    return RefusedError(
        f'table "{step.facts.name}" cannot be {act}: something else depends on it',
        f"Postgres says: {error.diag.message_primary}. {error.diag.message_detail or ''}".strip(),
        "Drop what depends on it, such as a foreign key or a view, or keep the rows: `--data keep`.",
    )


def _is_there(connection: Connection, table: str) -> bool:
    name = identifier(table).as_string(connection)
    return connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,)
