"""A Postgres table, judged with the progress table beside it.

The order in which rows were written is the order of their numbers, which Postgres gives and never takes back.
A table of upserts keeps the newest row of a key alone, so a trigger writes down each change in its
transaction: no row of the source may stand there twice.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from itertools import cycle
from typing import Any, LiteralString

from psycopg import sql

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.connectors.postgres.spec import Mode, PostgresTarget
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import checker
from tests.faults.buckets import of_the_newest
from tests.faults.feed import Feed
from tests.faults.outcome import Outcome
from tests.faults.parts import Part
from tests.faults.table_watch import TableWatch, answer
from tests.faults.topics import Record

_SETTLE_SECONDS = 20.0
_POLL_SECONDS = 0.05
_MADE: LiteralString = """
    CREATE TABLE {table} (n bigint GENERATED ALWAYS AS IDENTITY, id text, key text, bucket bigint, seq bigint,
                          version int, pad text, pause bigint)"""
_CHANGES: LiteralString = """
    ALTER TABLE {table} ADD PRIMARY KEY (key, bucket);
    CREATE TABLE {log} (n bigint GENERATED ALWAYS AS IDENTITY, id text, key text, seq bigint, version int);
    CREATE FUNCTION {log}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO {log} (id, key, seq, version) VALUES (NEW.id, NEW.key, NEW.seq, NEW.version);
        RETURN NULL;
    END $$;
    CREATE TRIGGER changes AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {log}()"""
_FATES: LiteralString = """
    SELECT pg_xact_status(xid::xid8) FROM unnest(%s::text[]) AS xid
    WHERE xid::xid8 < pg_snapshot_xmax(pg_current_snapshot())"""


class TableOutput:
    """See :class:`.outputs.Output`.

    :param server: is killed, so it is the story's own.
    """

    def __init__(self, server: Postgres, target: PostgresTarget) -> None:
        self._server = server
        self._replaces = target.mode is Mode.UPSERT
        self._table = sql.Identifier(*target.table.split("."))
        self._log = sql.Identifier(*f"{target.table}_changes".split(".")) if self._replaces else self._table
        self._watch = TableWatch(server, target.table, target.progress_table, replaces=self._replaces)
        self._signals = cycle((signal.SIGTERM, signal.SIGKILL))

    def make(self) -> None:
        with self._server.connect() as connection:
            for statement in (_MADE, _CHANGES) if self._replaces else (_MADE,):
                connection.execute(sql.SQL(statement).format(table=self._table, log=self._log))
        self._watch.start()

    def close(self) -> None:
        self._watch.stop()

    def has_open_transaction(self) -> bool:
        return bool(self._watch.open_sessions())

    def left_behind(self) -> int:
        """Return how many transactions that were seen open were rolled back."""
        fates: list[str] = []

        def are_known() -> bool:
            fates[:] = [fate for (fate,) in answer(self._server, _FATES, [sorted(self._watch.open)])]
            return "in progress" not in fates

        holds_within(are_known, _SETTLE_SECONDS, pause_seconds=_POLL_SECONDS)
        return fates.count("aborted")

    def kill(self, part: Part) -> bool:
        """End the backend of an open transaction, as an administrator or as a lack of memory does; or all."""
        sessions = self._watch.open_sessions()
        if not sessions:
            return False
        if part is Part.BACKEND:
            try:
                os.kill(sessions[0], next(self._signals))
            except ProcessLookupError:
                return False
        else:
            self._server.kill()
            self._server.restart()
        return True

    def examine(self, feed: Feed) -> Outcome:
        changes = list(self._records())
        verdict = checker.judge(changes, feed.rows)
        progress = [record for _, record in self._watch.look().progress]
        return Outcome(
            verdict=of_the_newest(verdict, self._ids(), feed) if self._replaces else verdict,
            aborted=self.left_behind(),
            aborted_what="transactions rolled back",
            epochs=max(record.epoch for record in progress),
            torn=tuple(self._watch.torn),
            regressions=tuple(checker.regressions(self._watch.history)),
            vanished=len(self._watch.fallen),
            versions=len({json.loads(record.value or b"")["version"] for record in changes}),
        )

    def _ids(self) -> set[str]:
        return {key for (key,) in answer(self._server, sql.SQL("SELECT id FROM {}").format(self._table))}

    def _records(self) -> Iterator[Record]:
        query = sql.SQL("SELECT n, id, key, seq, version FROM {} ORDER BY n").format(self._log)
        for n, *values in answer(self._server, query):
            row: dict[str, Any] = dict(zip(("id", "key", "seq", "version"), values, strict=True))
            yield Record(0, n, row["key"].encode(), json.dumps(row).encode())
