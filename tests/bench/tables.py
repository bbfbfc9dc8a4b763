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
_SEED = 20261122
_DISTINCT = 10_000
_FIXED_BYTES = 28
_LETTERS = "abcdefghijklmnopqrstuvwxyz "


@dataclass(frozen=True)
class Tables:
    """See :class:`.rounds.Place`."""

    server: Postgres

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
