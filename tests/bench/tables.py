"""The tables that arms fill, what a row of them is, and counting what arrived."""

from __future__ import annotations

import random
from dataclasses import dataclass

from psycopg import sql

from airflow_provider_sinks.local.postgres import Postgres

COLUMNS = (
    "CAST(substr(value, 1, 9) AS BIGINT) AS id",
    "substr(value, 10, 11) AS userid",
    "CAST(substr(value, 21, 8) AS DOUBLE) AS price",
    "substr(value, 29) AS payload",
)
"""A row from a value, in SQL that costs little: what is measured is the way into the table."""
_TABLE = "CREATE TABLE {} (id bigint, userid text, price double precision, payload text)"
_FILL_WAL = "SELECT pg_logical_emit_message(false, 'bench', repeat('x', 1000000)) FROM generate_series(1, %s)"
_WAL_BYTES_MAX = 4_000_000_000
"""A checkpoint comes by itself behind a little more (``max_wal_size`` of :mod:`..local.postgres`)."""
_SEED = 20261122
_DISTINCT = 10_000
_FIXED_BYTES = 28
_LETTERS = "abcdefghijklmnopqrstuvwxyz "


@dataclass(frozen=True)
class Tables:
    """See :class:`.rounds.Place`."""

    server: Postgres

    def make_wal(self, size_bytes: int) -> None:
        """Let the server make the segments of its WAL that a run of so many bytes needs.

        It fills each with zeros first, and uses it again behind a checkpoint; else the first run would pay
        for that, and the next ones not.
        """
        with self.server.connect() as connection:
            connection.execute(_FILL_WAL, [min(_WAL_BYTES_MAX, size_bytes * 3 // 2) // 1_000_000])
            connection.execute("CHECKPOINT")

    def create(self, target: str) -> None:
        with self.server.connect() as connection:
            connection.execute(sql.SQL(_TABLE).format(sql.Identifier(target)))

    def count(self, target: str) -> int:
        with self.server.connect() as connection:
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(target))
            found = connection.execute(query).fetchone()
        return int(found[0]) if found else 0

    def delete(self, target: str) -> None:
        """Drop a table, and let the server write down what it owes: no run pays for the one before."""
        with self.server.connect() as connection:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(target)))
            connection.execute("CHECKPOINT")


def values(value_bytes: int, distinct: int = _DISTINCT) -> list[bytes]:
    """Return some values of rows, the same in every run.

    :param distinct: how many.
    """
    chance = random.Random(_SEED)  # noqa: S311  not a secret
    return [
        f"{chance.randrange(10**9):09d}user-{chance.randrange(10**6):06d}{chance.uniform(0, 9999):08.3f}"
        f"{''.join(chance.choices(_LETTERS, k=value_bytes - _FIXED_BYTES))}".encode()
        for _ in range(distinct)
    ]
