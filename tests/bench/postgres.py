"""Our sinks into Postgres beside Spark's own JDBC writer, which is at-least-once.

python -m tests.bench.postgres [--gigabytes 0.6] [--rounds 3] [--sizes 100 1024] [--partitions 4 16]
python -m tests.bench.postgres_alone: the same without a source

A driver that has just started compiles its code while it writes; so the rate is taken over the second half of
what each run writes. ``first epoch`` is what a run that ends soon has of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench import topics
from tests.bench.arms import prepare, submit, table_sink
from tests.bench.rounds import Arm, Rounds, Stream, Work, machine, make_source, print_drain
from tests.bench.tables import Tables, values

EPOCH_BYTES = 25_000_000
"""Epochs of as many bytes: 250,000 rows of 100."""
JDBC_VERSION = "42.7.14"
_BATCHES = {"reWriteBatchedInserts": "true", "batchsize": "10000"}


@dataclass(frozen=True)
class JdbcArm:
    """Spark's JDBC writer.

    :param options: beside those that it cannot do without.
    """

    name: str
    server: Postgres
    options: Mapping[str, str] = field(default_factory=dict)

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        arguments = [work.bootstrap, work.source, f'"{target}"', str(work.rows_per_epoch)]
        places = [str(work.folder / "checkpoint"), str(self.written_options(work))]
        return submit(work, "jdbc", [*arguments, *places], *self.driver())

    def driver(self) -> list[str]:
        """Return what spark-submit needs to know of the driver."""
        jar = jars.resolve(f"org.postgresql:postgresql:{JDBC_VERSION}")[0]
        return ["--driver-class-path", str(jar)]

    def written_options(self, work: Work) -> Path:
        """Write the options into a file: they have a password among them."""
        work.folder.mkdir(parents=True)
        file = work.folder / "options.json"
        file.write_text(json.dumps({**self._address(), **self.options}))
        return file

    def _address(self) -> dict[str, str]:
        server = self.server
        url = f"jdbc:postgresql://{server.host}:{server.port}/{server.dbname}"
        driver = "org.postgresql.Driver"
        return {"url": url, "user": server.user, "password": server.password, "driver": driver}


@dataclass(frozen=True)
class OurArm:
    """A sink of ours."""

    name: str
    server: Postgres

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        table = {"connection": "pg", "table": f"public.{target}"}
        spec = table_sink(work, target, {"postgres": table})
        return submit(work, "ours", [prepare(work, spec, pg(self.server))])


def pg(server: Postgres) -> dict[str, ConnectionOptions]:
    """Return the server as a connection of sinks."""
    return {"pg": PostgresOptions.from_connection("pg", **server.connection_fields, extra={})}


def arms(server: Postgres) -> tuple[Arm, ...]:
    """Return the arms; the first is what the others are compared with."""
    return (
        JdbcArm("JDBC, batches of 10,000 rewritten", server, _BATCHES),
        JdbcArm("JDBC, defaults", server),
        OurArm("ours", server),
    )


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-postgres", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.6, help="that each run copies")
    parser.add_argument("--epoch-rows", type=int, help="instead of 25 MB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    parser.add_argument("--partitions", type=int, nargs="*", default=[4, 16])
    given = parser.parse_args()
    unwind_on_signals()
    services = f"Postgres 18 and Kafka 4.1.2 on the same machine, JDBC driver {JDBC_VERSION}"
    print(machine(services), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        KafkaBroker.start(Path(name) / "kafka", lasting=True) as broker,
        Postgres.start(Path(name) / "postgres", lasting=True) as server,
    ):
        tables = Tables(server)
        tables.make_wal(int(given.gigabytes * 1e9))
        rounds = Rounds(broker.bootstrap, Path(name), given.rounds, arms(server), tables)
        for size in given.sizes:
            for partitions in given.partitions:
                source = f"source-{size}-{partitions}"
                records, per_epoch = (
                    int(given.gigabytes * 1e9 / size),
                    given.epoch_rows or EPOCH_BYTES // size,
                )
                make_source(broker.bootstrap, source, values(size), records, partitions)
                title = f"{records:,} rows of {size} bytes, {partitions} partitions, epochs of {per_epoch:,}"
                print_drain(title, rounds.run(Stream(source, records, per_epoch, records // 2)))
                topics.delete(broker.bootstrap, source)


if __name__ == "__main__":
    main()
