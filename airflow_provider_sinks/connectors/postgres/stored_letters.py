"""Reads the dead letters of a table: the newest, all, or one. Changes nothing.

A letter's place is where its row stands (``ctid``): page and line, as long as nobody rewrites the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from psycopg import sql
from psycopg.rows import dict_row

from airflow_provider_sinks.connectors.postgres.creation import DEAD_LETTER_COLUMNS, identifier
from airflow_provider_sinks.connectors.postgres.layout import layout
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.session import ControlConnection, Session, SessionName
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.spelling import letter_of_row
from airflow_provider_sinks.core.spec.sink import SinkSpec

Takes = Callable[[Letter], bool]

_BATCH = 1000


class PostgresLetters:
    """The letters of one table. Use it as a context manager.

    :param options: of the target's connection; hold secrets.
    :param table: with its schema.
    """

    def __init__(self, spec: SinkSpec, options: PostgresOptions, table: str) -> None:
        self._table = table
        name = SessionName(table, spec.name, "", "")
        self._control = ControlConnection(Session(options, name, spec.transaction_timeout))

    def all(self) -> Iterator[Letter]:
        """Yield every letter, the newest first."""
        connection = self._control.ask(lambda found: found)
        with connection.transaction(), connection.cursor("sinks_letters", row_factory=dict_row) as cursor:
            cursor.itersize = _BATCH
            cursor.execute(self._query(sql.SQL("ORDER BY at DESC, ctid DESC")))
            for row in cursor:
                yield _letter(row)

    def newest(self, limit: int, takes: Takes) -> list[Letter]:
        """Return the newest letters that are wanted, the newest first."""
        found: list[Letter] = []
        for letter in self.all():
            if len(found) >= limit:
                break
            if takes(letter):
                found.append(letter)
        return found

    def at(self, place: tuple[int, int]) -> Letter | None:
        """Return the letter of a place, if one is there."""
        query = self._query(sql.SQL("WHERE ctid = {}::tid").format(sql.Literal(f"({place[0]},{place[1]})")))

        def ask(connection: Any) -> Letter | None:
            with connection.cursor(row_factory=dict_row) as cursor:
                row = cursor.execute(query).fetchone()
            return _letter(row) if row else None

        return self._control.ask(ask)

    def close(self) -> None:
        """Drop the connection."""
        self._control.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _query(self, rest: sql.Composable) -> sql.Composed:
        """Return the query of all columns that the table has; an earlier release made fewer."""
        found = self._control.ask(lambda connection: layout(connection, self._table))
        there = [name for name in DEAD_LETTER_COLUMNS if found and name in found.columns]
        texts = {"headers": sql.SQL("headers::text")}
        named = [texts.get(name, sql.Identifier(name)) for name in there]
        columns = sql.SQL(", ").join([sql.SQL("ctid::text AS place"), *named])
        return sql.SQL("SELECT {} FROM {} {}").format(columns, identifier(self._table), rest)


def _letter(row: Mapping[str, Any]) -> Letter:
    page, line = row["place"].strip("()").split(",")
    return letter_of_row((int(page), int(line)), row)
