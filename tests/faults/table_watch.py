"""Watches a Postgres table: each look is one statement, so it sees rows and progress of one moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults.watch import Look, Watch

_ANSWER_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_APPENDED: LiteralString = (
    "SELECT json_build_object('rows', count(*)), count(*) - count(DISTINCT id), count(*)"
)
_REPLACED: LiteralString = "SELECT json_object_agg(key || '/' || bucket, seq), 0, NULL"
_OPEN: LiteralString = """
    SELECT pid, backend_xid::text FROM pg_stat_activity WHERE backend_xid IS NOT NULL
      AND application_name LIKE 'sinks/%' AND application_name NOT LIKE '%/driver/%'"""
_PROGRESS: LiteralString = (
    "(SELECT json_agg(json_build_array(writer, record::text)) FROM {progress} WHERE record IS NOT NULL)"
)


class TableWatch(Watch):
    """See :class:`.watch.Watch`.

    ``open`` has the transactions in which somebody had written something when it was looked.

    :param replaces: rows replace older ones of their key.
    """

    away = (psycopg.OperationalError,)

    def __init__(self, server: Postgres, table: str, progress: str, *, replaces: bool) -> None:
        super().__init__()
        self.open: set[str] = set()
        self._server = server
        self._progress = progress
        names = {name: sql.Identifier(*full.split(".")) for name, full in [("t", table), ("p", progress)]}
        what = _REPLACED if replaces else _APPENDED
        self._query = sql.SQL(what + ", " + _PROGRESS + " FROM {table}").format(
            table=names["t"], progress=names["p"]
        )

    def look(self) -> Look:
        """Look once. The progress table is made by the sink's first start."""
        [(there,)] = answer(self._server, "SELECT to_regclass(%s) IS NOT NULL", [self._progress])
        if not there:
            return Look({})
        [(newest, doubled, rows, records)] = answer(self._server, self._query)
        progress = [(writer, ProgressRecord.decode(text.encode())) for writer, text in records or ()]
        return Look(newest or {}, doubled, rows, progress)

    def open_sessions(self) -> list[int]:
        """Return the backends that have written and not committed."""
        found = answer(self._server, _OPEN)
        self.open.update(xid for _, xid in found)
        return [pid for pid, _ in found]

    def look_around(self) -> None:
        """Look, also at who is at work."""
        super().look_around()
        self.open_sessions()


def answer(server: Postgres, query: Any, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return what a server answers, once it is there."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while True:
        try:
            with server.connect() as connection:
                return connection.execute(query, values or None).fetchall()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
