"""A reader of committed rows that looks at a table while things break, and finds what may never be seen.

Each look is one statement, so it sees rows and progress as they were at one moment.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId
from airflow_provider_sinks.local.postgres import Postgres

_ANSWER_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_PAUSE_LOOKS = 4
"""So many times as long as a look took is waited before the next: the sink has most of the processor."""
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


@dataclass(frozen=True)
class Look:
    """What a reader sees at one moment.

    :param newest: what may never fall: the value of each key, or the number of rows.
    :param doubled: how many rows are there that another row repeats.
    :param rows: how many rows are there, where none replaces another.
    :param progress: the newest record of each writer.
    """

    newest: Mapping[str, int]
    doubled: int = 0
    rows: int | None = None
    progress: Sequence[tuple[WriterId, ProgressRecord]] = ()

    def torn(self) -> Iterator[str]:
        """Say which rows are there without their record, which record without its rows, which rows twice."""
        if self.doubled:
            yield f"{self.doubled} rows are visible twice"
        recorded = sum(record.rows_total for writer, record in self.progress if writer != DRIVER)
        if self.rows is not None and self.rows != recorded:
            yield f"{self.rows} rows are visible, and {recorded} are recorded"


def fallen(old: Mapping[str, int], new: Mapping[str, int]) -> list[str]:
    """Return what has a lower value than before, or none."""
    return [f"{key}: {value}, then {new.get(key)}" for key, value in old.items() if new.get(key, -1) < value]


class TableWatch:
    """Looks again and again, also while the server is away.

    ``open`` has the transactions in which somebody had written something when it was looked.

    :param replaces: rows replace older ones of their key.
    """

    def __init__(self, server: Postgres, table: str, progress: str, *, replaces: bool) -> None:
        self.torn: list[str] = []
        self.fallen: list[str] = []
        self.history: list[tuple[WriterId, ProgressRecord]] = []
        self.open: set[str] = set()
        self._server = server
        self._progress = progress
        names = {name: sql.Identifier(*full.split(".")) for name, full in [("t", table), ("p", progress)]}
        self._newest: Mapping[str, int] = {}
        what = _REPLACED if replaces else _APPENDED
        self._query = sql.SQL(what + ", " + _PROGRESS + " FROM {table}").format(
            table=names["t"], progress=names["p"]
        )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="table watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()

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

    def take(self, look: Look) -> None:
        """Compare a look with the one before."""
        self.torn += look.torn()
        self.fallen += fallen(self._newest, look.newest)
        self._newest = look.newest
        known = dict(self.history)
        self.history += [(writer, record) for writer, record in look.progress if known.get(writer) != record]

    def _look_on(self) -> None:
        while not self._closing.is_set():
            started = time.monotonic()
            with contextlib.suppress(psycopg.OperationalError):
                self.take(self.look())
                self.open_sessions()
            took = time.monotonic() - started
            self._closing.wait(max(_PAUSE_SECONDS, _PAUSE_LOOKS * took))


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
