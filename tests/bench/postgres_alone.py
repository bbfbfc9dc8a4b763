"""The write into Postgres alone, ours beside Spark's JDBC writer: rows that Spark makes, without any source.

python -m tests.bench.postgres_alone [--gigabytes 0.6] [--rounds 3] [--sizes 100 1024] [--partitions 4 16]

What a whole sink costs, :mod:`.postgres` measures: there both arms have the source and the SQL in them.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench import postgres
from tests.bench.arms import prepare, submit
from tests.bench.postgres import EPOCH_BYTES, JDBC_VERSION, JdbcArm, pg
from tests.bench.rounds import Arm, Rounds, Stream, Work, machine, print_drain
from tests.bench.tables import Tables

_APP = Path(__file__).with_name("alone_app.py")


@dataclass(frozen=True)
class Case:
    """What is written.

    :param size_bytes: of a row.
    """

    size_bytes: int
    partitions: int
    epoch_rows: int
    epochs: int

    @property
    def arguments(self) -> list[str]:
        """For the application."""
        return [str(n) for n in (self.epoch_rows, self.epochs, self.partitions, self.size_bytes)]

    @property
    def records(self) -> int:
        """How many rows are there in the end."""
        return self.epoch_rows // self.partitions * self.partitions * self.epochs


@dataclass(frozen=True)
class JdbcAlone:
    """Spark's JDBC writer, given rows."""

    case: Case
    jdbc: JdbcArm

    @property
    def name(self) -> str:
        """See :class:`.rounds.Arm`."""
        return self.jdbc.name

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        arguments = [str(self.jdbc.written_options(work)), f'"{target}"', *self.case.arguments]
        return submit(work, "jdbc", arguments, *self.jdbc.driver(), app=_APP)


@dataclass(frozen=True)
class OursAlone:
    """The epochs of a sink of ours, given rows."""

    case: Case
    server: Postgres
    name: str = "ours"

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        table = {"postgres": {"connection": "pg", "table": f"public.{target}"}}
        source = {"kafka": {"connection": "kafka", "topic": "none", "format": "text"}}
        name = f"{target}-of-{self.case.size_bytes}-{self.case.partitions}"  # each has a progress of its own
        spec = SinkSpec.parse({"name": name, "source": source, "target": table})
        return submit(work, "ours", [prepare(work, spec, pg(self.server)), *self.case.arguments], app=_APP)


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-postgres", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.6, help="that each run writes")
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
        for number, (size, partitions) in enumerate((s, p) for s in given.sizes for p in given.partitions):
            epoch_rows = EPOCH_BYTES // size
            case = Case(size, partitions, epoch_rows, max(4, int(given.gigabytes * 1e9 / EPOCH_BYTES)))
            jdbc = [arm for arm in postgres.arms(server) if isinstance(arm, JdbcArm)]
            arms: list[Arm] = [*(JdbcAlone(case, arm) for arm in jdbc), OursAlone(case, server)]
            folder = Path(name) / str(number)
            rounds = Rounds("127.0.0.1:1", folder, given.rounds, arms, Tables(server))
            title = (
                f"{case.records:,} rows of {size} bytes, {partitions} partitions, epochs of {epoch_rows:,}"
            )
            print_drain(title, rounds.run(Stream("none", case.records, epoch_rows, case.records // 2)))


if __name__ == "__main__":
    main()
