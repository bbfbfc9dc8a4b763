"""The progress table: one row per sink and writer, which says what is committed and who may write next.

Why it is exactly once. A writer's transaction ends with :func:`advance`: it changes the writer's own row if,
and only if, ``run`` and ``holder`` are still those that this very object put there, and ``generation`` and
``epoch`` are those it read. Rows and record are one transaction, so no row is visible without that change.

* A newer start takes **all** rows of the sink (:func:`take_run`) under the lock of the driver's row. An older
  writer either had committed before, and then the start reads its record, or finds no row to change.
* Another object of the same writer takes the row with :func:`take_writer`. The older one finds no row to
  change, whatever epoch it is in: each commit, also each step of a long epoch, leaves another ``holder``.
* A row that is being changed is locked until its transaction ends; whoever takes it waits, and reads what was
  committed. So a commit whose answer was lost is known for sure behind either.
* A table that was altered, or swapped by ``RENAME``, takes no rows: the same change demands that the names
  of the sink's tables lead to what the record names, with the columns that the run knows
  (:mod:`.known_tables`).
* A database that was put back to before this run holds the rows for one of the runs before it, or for none:
  nothing can be changed either. It is told apart from a newer start by how far its rows are, which is never
  less behind a newer start (:func:`overtaken`): nor is the time of an announcement, whatever the clock does.
* A trigger that drops such a change, or writes another one, looks like a newer holder. A start refuses it
  (:mod:`.fitness`), and a writer that lost its row within its run looks for one that came since.
* A writer without a row can not commit: rows are made by the driver alone (:func:`announce`), before any
  task runs. So a start finds every writer that may still commit.

Ending older connections (:func:`end_sessions`) makes none of this true; it only shortens the wait.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.known_tables import KnownTable
from airflow_provider_sinks.connectors.postgres.reached import Reached, overtaken
from airflow_provider_sinks.connectors.postgres.session import Connection, SessionName
from airflow_provider_sinks.core.progress.history import History, fold
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, ProgressRecord, WriterId

_TERMINATE_PATIENCE_MS = 5000
_TERMINATES_PATIENTLY = 140000
"""Older servers do not wait for an end; whoever takes the rows waits for their locks."""


@dataclass(frozen=True)
class Place:
    """The rows of one sink.

    :param table: with its schema.
    """

    table: str
    sink: str

    def statement(self, text: str, **values: str | int | None) -> sql.Composed:
        """Return a statement about these rows; ``{table}``, ``{sink}`` and the given values stand in it."""
        literals = {name: sql.Literal(value) for name, value in values.items()}
        return sql.SQL(text).format(table=identifier(self.table), sink=sql.Literal(self.sink), **literals)


@dataclass(frozen=True)
class Turn:
    """Who may write a writer's row next, and what stands in it now: what a compare-and-set compares."""

    run: str
    holder: str
    generation: int = 0
    epoch: int = 0


def read(connection: Connection, place: Place) -> History:
    """Return the progress of a sink. The driver's record of a generation stands before the writers'."""
    query = place.statement(
        "SELECT writer, record::text FROM {table} WHERE sink = {sink} AND record IS NOT NULL"
        " ORDER BY generation, writer <> {driver}, writer",
        driver=DRIVER,
    )
    found = connection.execute(query).fetchall()
    messages = (
        (number, ProgressKey(place.sink, writer).encode(), record.encode())
        for number, (writer, record) in enumerate(found)
    )
    return fold(messages, place.sink)


def take_run(connection: Connection, place: Place, run: str) -> None:
    """Give every row of the sink to a run: no writer of another run can commit from here on."""
    with connection.transaction():
        _make_driver(connection, place, run)
        connection.execute(
            place.statement(
                "SELECT FROM {table} WHERE sink = {sink} AND writer = {driver} FOR UPDATE", driver=DRIVER
            )
        )
        connection.execute(
            place.statement("UPDATE {table} SET run = {run}, holder = '' WHERE sink = {sink}", run=run)
        )


def in_force(place: Place) -> sql.Composed:
    """Return the query for which run holds the sink, and how far the rows are; no row where nobody did."""
    return place.statement(
        "SELECT held.run, newest.generation, newest.epoch,"
        " (extract(epoch FROM held.changed_at) * 1000000)::bigint FROM {table} AS held,"
        " LATERAL (SELECT generation, epoch FROM {table} WHERE sink = {sink}"
        " ORDER BY generation DESC, epoch DESC LIMIT 1) AS newest"
        " WHERE held.sink = {sink} AND held.writer = {driver}",
        driver=DRIVER,
    )


def who_is_in_force(connection: Connection, place: Place) -> tuple[str, Reached] | None:
    """Return the run that holds the sink, and how far its rows are; ``None`` where nobody ever did."""
    found = connection.execute(in_force(place)).fetchone()
    return (str(found[0]), Reached(*found[1:])) if found else None


def demand_held(connection: Connection, place: Place, run: str, known: Reached) -> Reached:
    """Return how far the rows of a sink are, if a run holds it and nothing is forgotten.

    :param known: how far the run knows them to be.
    :raises FencedError: a newer run holds the sink.
    :raises RefusedError: an older one does, or the rows are less far.
    """
    found = who_is_in_force(connection, place)
    if found is None or found[0] != run or found[1] < known:
        raise overtaken(place.sink, run, known, found)
    return found[1]


def announce(
    connection: Connection, place: Place, run: str, record: ProgressRecord, known: Reached
) -> Reached:
    """Write the driver's record, make the rows of every writer that it names, and return how far they are.

    :param known: how far this run knows them to be.
    :raises FencedError: a newer run holds the sink.
    :raises RefusedError: an older one does, or the rows are less far.
    """
    with connection.transaction():
        _make_driver(connection, place, run)
        demand_held(connection, place, run, known)
        done = connection.execute(
            place.statement(
                "UPDATE {table} SET generation = {generation}, epoch = {epoch}, record = {record}::json,"
                " changed_at = greatest(now(), changed_at + interval '1 microsecond')"
                " WHERE sink = {sink} AND writer = {driver} AND run = {run}",
                driver=DRIVER,
                run=run,
                **_values(record),
            )
        )
        found = who_is_in_force(connection, place)
        if found is None or done.rowcount != 1:
            raise overtaken(place.sink, run, known, found)
        _make_writers(connection, place, run, record.writers)
    return found[1]


def take_writer(place: Place, run: str, writer: WriterId, holder: str) -> str:
    """Return the statement that gives a writer's row to a new holder of the same run, and reads it."""
    return place.statement(
        "UPDATE {table} SET holder = {holder} WHERE sink = {sink} AND writer = {writer} AND run = {run}"
        " RETURNING generation, epoch, record::text",
        run=run,
        writer=writer,
        holder=holder,
    ).as_string(None)


def advance(
    place: Place,
    writer: WriterId,
    turn: Turn,
    record: ProgressRecord,
    *,
    holder: str,
    tables: Iterable[KnownTable],
) -> str:
    """Return the compare-and-set that ends a writer's transaction: it changes one row, or is refused.

    :param turn: what the row must say.
    :param holder: who holds the row from then on.
    :param tables: that must still be what they were.
    """
    own = place.statement(
        "UPDATE {table} SET holder = {next}, generation = {generation}, epoch = {epoch},"
        " record = {record}::json, changed_at = now()"
        " WHERE sink = {sink} AND writer = {writer} AND run = {run} AND holder = {holder}"
        " AND generation = {old_generation} AND epoch = {old_epoch}",
        writer=writer,
        run=turn.run,
        holder=turn.holder,
        old_generation=turn.generation,
        old_epoch=turn.epoch,
        next=holder,
        **_values(record),
    )
    return sql.SQL(" AND ").join([own, *(table.condition() for table in tables)]).as_string(None)


def standing(place: Place, writer: WriterId) -> str:
    """Return the query for who may write a writer's row, and what stands in it."""
    return place.statement(
        "SELECT run, holder, generation, epoch FROM {table} WHERE sink = {sink} AND writer = {writer}",
        writer=writer,
    ).as_string(None)


def late_trigger(place: Place) -> str:
    """Return the query for a trigger of the table that may drop or change a row: a start refuses any."""
    return place.statement(
        "SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = to_regclass({name}) AND NOT tgisinternal"
        " AND tgenabled IN ('O', 'A') AND tgtype & 3 = 3 ORDER BY 1 LIMIT 1",
        name=identifier(place.table).as_string(None),
    ).as_string(None)


def end_sessions(connection: Connection, name: SessionName) -> None:
    """End the connections of older runs of the sink. Those of another login end by their own time-outs."""
    waits = connection.info.server_version >= _TERMINATES_PATIENTLY
    query = sql.SQL("""
        SELECT pg_terminate_backend(pid{}) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
          AND starts_with(application_name, %s) AND NOT starts_with(application_name, %s)""")
    patience = sql.SQL(f", {_TERMINATE_PATIENCE_MS}" if waits else "")
    connection.execute(query.format(patience), [name.of_sink, name.of_run])


def end_open(name: SessionName) -> str:
    """Return the statement that ends transactions which other objects of the same writer left open."""
    query = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
          AND xact_start IS NOT NULL AND starts_with(application_name, {})"""
    return sql.SQL(query).format(sql.Literal(name.of_writer)).as_string(None)


def end_now(connection: Connection, name: SessionName) -> None:
    """End what a writer left open."""
    connection.execute(end_open(name).encode())


def new_holder() -> str:
    """Return an id that nobody else has."""
    return uuid.uuid4().hex


def _make_driver(connection: Connection, place: Place, run: str) -> None:
    connection.execute(
        place.statement(
            "INSERT INTO {table} (sink, writer, run) VALUES ({sink}, {driver}, {run}) ON CONFLICT DO NOTHING",
            driver=DRIVER,
            run=run,
        )
    )


def _make_writers(connection: Connection, place: Place, run: str, writers: Iterable[WriterId]) -> None:
    for writer in sorted({*writers} - {DRIVER}):
        connection.execute(
            place.statement(
                "INSERT INTO {table} AS known (sink, writer, run) VALUES ({sink}, {writer}, {run})"
                " ON CONFLICT (sink, writer) DO UPDATE SET run = {run}, holder = '' WHERE known.run <> {run}",
                writer=writer,
                run=run,
            )
        )


def _values(record: ProgressRecord) -> Mapping[str, str | int]:
    text = record.encode().decode()
    return {"generation": record.generation, "epoch": record.epoch, "record": text}
