"""The write into Postgres alone, ours beside Spark's JDBC writer: rows that Spark makes, without any source.

python -m tests.bench.postgres_alone [--gigabytes 0.6] [--rounds 3] [--sizes 100 1024] [--partitions 4 16]
    [--epoch-rows 250000] [--warm-up 300]

The last arm is no writer: what the server takes of the same rows, made before, without Spark.
Warm-up: a JVM compiles what it runs once per epoch for hundreds of epochs, and a sink runs for days.

What a whole sink costs, :mod:`.postgres` measures: there both arms have the source and the SQL in them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psycopg import sql

from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench import postgres
from tests.bench.alone_app import Made
from tests.bench.arms import prepare, submit
from tests.bench.postgres import EPOCH_BYTES, JDBC_VERSION, JdbcArm, pg
from tests.bench.rounds import Arm, Rounds, Stream, Work, machine, print_drain
from tests.bench.tables import Tables

_APP = Path(__file__).with_name("alone_app.py")
_AT_ONCE = 2
_BLOCK_BYTES = 1024 * 1024
_ROWS = (
    "COPY (SELECT id, 'user-' || lpad((id % 1000000)::text, 6, '0'), (id % 9999)::double precision,"
    " lpad(id::text, 9, '0') || {1} FROM generate_series(0::bigint, {0}) AS id) TO STDOUT (FORMAT binary)"
)
"""The rows of :meth:`.alone_app.Made.frame`."""


@dataclass(frozen=True)
class JdbcAlone:
    """Spark's JDBC writer, given rows."""

    made: Made
    jdbc: JdbcArm

    @property
    def name(self) -> str:
        """See :class:`.rounds.Arm`."""
        return self.jdbc.name

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        arguments = [str(self.jdbc.written_options(work)), f'"{target}"', *self.made.arguments]
        return submit(work, "jdbc", arguments, *self.jdbc.driver(), app=_APP)


@dataclass(frozen=True)
class OursAlone:
    """The epochs of a sink of ours, given rows."""

    made: Made
    server: Postgres
    name: str = "ours"

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        table = {"postgres": {"connection": "pg", "table": f"public.{target}"}}
        source = {"kafka": {"connection": "kafka", "topic": "none", "format": "text"}}
        name = f"{target}-of-{self.made.size_bytes}-{self.made.partitions}"  # each has a progress of its own
        spec = SinkSpec.parse({"name": name, "source": source, "target": table})
        return submit(work, "ours", [prepare(work, spec, pg(self.server)), *self.made.arguments], app=_APP)


@dataclass(frozen=True)
class PlainCopy:
    """What the server takes at most: the same rows in its own format, made before, by ``COPY`` without Spark.

    Two tasks run at once, as in the other arms.
    """

    made: Made
    server: Postgres
    name: str = "plain COPY of what is made already, without Spark"

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        work.folder.mkdir(parents=True)
        made, file = self.made, work.folder / "epochs.jsonl"
        ready = {rows: self._ready(rows) for rows in {made.task_rows(0), made.task_rows(made.warm_up)}}
        with ThreadPoolExecutor(_AT_ONCE) as pool:

            def write(number: int) -> None:
                rows = [ready[made.task_rows(number)]] * made.partitions
                list(pool.map(partial(self._copy, target), rows))

            made.time(file, write, time.process_time)
        return file

    def _ready(self, rows: int) -> bytes:
        query = sql.SQL(_ROWS).format(rows - 1, sql.Literal(self.made.filling))
        with self.server.connect() as connection, connection.cursor() as cursor, cursor.copy(query) as copy:
            return b"".join(copy)

    def _copy(self, target: str, ready: bytes) -> None:
        query = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(sql.Identifier(target))
        with self.server.connect() as connection, connection.cursor() as cursor, cursor.copy(query) as copy:
            for begin in range(0, len(ready), _BLOCK_BYTES):
                copy.write(ready[begin : begin + _BLOCK_BYTES])


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-postgres", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.6, help="that each run writes")
    parser.add_argument("--epoch-rows", type=int, help="instead of 25 MB")
    parser.add_argument("--warm-up", type=int, default=300, help="epochs of few rows before those that count")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    parser.add_argument("--partitions", type=int, nargs="*", default=[4, 16])
    given = parser.parse_args()
    unwind_on_signals()
    print(machine(f"Postgres 18 on the same machine, JDBC driver {JDBC_VERSION}"), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        Postgres.start(Path(name) / "postgres", lasting=True) as server,
    ):
        tables = Tables(server)
        tables.make_wal(int(given.gigabytes * 1e9))
        for number, (size, partitions) in enumerate((s, p) for s in given.sizes for p in given.partitions):
            epoch_rows = given.epoch_rows or EPOCH_BYTES // size
            epochs = max(4, int(given.gigabytes * 1e9 / (epoch_rows * size)))
            made = Made(epoch_rows, epochs, partitions, size, given.warm_up)
            jdbc = [arm for arm in postgres.arms(server) if isinstance(arm, JdbcArm)]
            arms: list[Arm] = [
                *(JdbcAlone(made, arm) for arm in jdbc),
                OursAlone(made, server),
                PlainCopy(made, server),
            ]
            folder = Path(name) / str(number)
            rounds = Rounds("127.0.0.1:1", folder, given.rounds, arms, tables)
            rows = f"{made.records:,} rows of {size} bytes, {partitions} partitions"
            title = f"{rows}, epochs of {epoch_rows:,} behind {given.warm_up} of few rows"
            stream = Stream("none", made.records, epoch_rows, epochs // 2 * epoch_rows)
            print_drain(title, rounds.run(stream))


if __name__ == "__main__":
    main()
