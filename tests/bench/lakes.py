"""Our sinks into Iceberg and Delta tables, beside what each format writes them with in Spark.

python -m tests.bench.lakes [--gigabytes 0.4] [--rounds 3] [--sizes 100 1024] [--formats iceberg delta]

Rows are appended beside the format's own streaming sink, and replaced by their key beside a plain MERGE in
``foreachBatch``, which is at-least-once. The rate is that behind the first two fifths of a run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol

from deltalake import DeltaTable

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench import topics
from tests.bench.arms import prepare, submit, table_sink
from tests.bench.lake_app import KEY
from tests.bench.rounds import Arm, Place, Rounds, Stream, Work, machine, make_source, print_drain
from tests.bench.tables import values
from tests.bench.topics import PARTITIONS
from tests.live.lake_spark import DELTA_SETTINGS, delta_jars, iceberg_settings, iceberg_spark

Mode = Literal["append", "upsert"]
EPOCH_BYTES = {"append": 50_000_000, "upsert": 10_000_000}
"""A table of files takes large epochs."""
_SHARE = {"append": 1.0, "upsert": 0.25}
"""A MERGE is slow."""
_KEYS = 200_000
_KEY_BYTES = 9
"""Of a value: see :data:`.tables.COLUMNS`."""
_CATALOG, _NAMESPACE = "lake", "bench"
_APP = Path(__file__).with_name("lake_app.py")
_NAMES = {"iceberg": "Iceberg", "delta": "Delta"}
_TYPES = "id BIGINT, userid STRING, price DOUBLE, payload STRING"


class Lake(Place, Protocol):
    """Where tables of one format are, and what arms need to know of it."""

    kind: str

    def target(self, name: str, mode: Mode) -> dict[str, Any]:
        """Return the target of a sink of ours."""

    def connections(self) -> Mapping[str, ConnectionOptions]:
        """Return those of a sink of ours, beside ``kafka``."""

    def table(self, name: str) -> str:
        """Return how Spark's own sinks name a table."""

    def settings(self) -> Mapping[str, str]:
        """Return settings of a session of Spark that knows the format."""

    def statements(self, name: str) -> Sequence[str]:
        """Return what makes a table before it is written."""


class IcebergLake:
    """Tables in a JDBC catalog on Postgres. See :class:`Lake`."""

    kind = "iceberg"

    def __init__(self, server: Postgres, folder: Path) -> None:
        self._folder = folder
        extra = {"name": _CATALOG, "warehouse": folder.as_uri()}
        self._options = IcebergOptions.from_connection("lake", **server.connection_fields, extra=extra)

    def target(self, name: str, mode: Mode) -> dict[str, Any]:
        table = f"{_NAMESPACE}.{_named(name)}"
        return {"catalog": "lake", "table": table, "create": True, "mode": mode, **_key(mode)}

    def connections(self) -> Mapping[str, ConnectionOptions]:
        return {"lake": self._options}

    def table(self, name: str) -> str:
        return f"{_CATALOG}.{_NAMESPACE}.{_named(name)}"

    def settings(self) -> Mapping[str, str]:
        return iceberg_settings(self._options)

    def statements(self, name: str) -> Sequence[str]:
        table = self.table(name)
        made = f"CREATE NAMESPACE IF NOT EXISTS {_CATALOG}.{_NAMESPACE}"
        return made, f"CREATE TABLE {table} ({_TYPES}) USING iceberg"

    def create(self, target: str) -> None:
        """Its writers make it."""

    def count(self, target: str) -> int:
        """Count by Spark: PyIceberg does not apply the deletes of an upsert."""
        reader = iceberg_spark(self._folder, self._options)
        try:
            [[found]] = reader.sql("SELECT count(*) FROM {t}", f"{_NAMESPACE}.{_named(target)}")
        finally:
            reader.close()
        return int(found)

    def delete(self, target: str) -> None:
        with closing(TableCatalog(self._options)) as catalog:
            catalog.drop(f"{_NAMESPACE}.{_named(target)}")
        shutil.rmtree(self._folder / _NAMESPACE / _named(target))


class DeltaLake:
    """Tables in a folder. See :class:`Lake`."""

    kind = "delta"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def target(self, name: str, mode: Mode) -> dict[str, Any]:
        return {"path": self.table(name), "create": True, "mode": mode, **_key(mode)}

    def connections(self) -> Mapping[str, ConnectionOptions]:
        return {}

    def table(self, name: str) -> str:
        return str(self._folder / name)

    def settings(self) -> Mapping[str, str]:
        return DELTA_SETTINGS

    def statements(self, name: str) -> Sequence[str]:
        return [f"CREATE TABLE delta.`{self.table(name)}` ({_TYPES}) USING delta"]

    def create(self, target: str) -> None:
        """Its writers make it."""

    def count(self, target: str) -> int:
        return int(DeltaTable(self.table(target)).count())

    def delete(self, target: str) -> None:
        shutil.rmtree(self._folder / target)


@dataclass(frozen=True)
class OwnArm:
    """What the format's documents say, in Spark."""

    name: str
    lake: Lake
    mode: Mode

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        work.folder.mkdir(parents=True)
        file = work.folder / "options.json"  # it has a password in it
        given = {
            "format": self.lake.kind,
            "settings": {"spark.sql.shuffle.partitions": str(PARTITIONS), **self.lake.settings()},
            "statements": self.lake.statements(target),
        }
        file.write_text(json.dumps(given))
        places = [self.lake.table(target), str(work.rows_per_epoch), str(work.folder / "checkpoint")]
        arm = "append" if self.mode == "append" else "merge"
        arguments = [work.bootstrap, work.source, *places, str(file)]
        return submit(work, arm, arguments, *_jars(self.lake.kind), app=_APP)


@dataclass(frozen=True)
class OurArm:
    """A sink of ours."""

    name: str
    lake: Lake
    mode: Mode

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        spec = table_sink(work, target, {self.lake.kind: self.lake.target(target, self.mode)})
        return submit(work, "ours", [prepare(work, spec, self.lake.connections())])


def main() -> None:
    """Run the whole benchmark."""
    given = _arguments()
    unwind_on_signals()
    versions = [
        f"{named.split(':')[1]} {named.split(':')[2]}" for named in (jars.SPARK_ICEBERG[0], *jars.SPARK_DELTA)
    ]
    print(machine(*versions, "Postgres 18 and Kafka 4.1.2 on the same machine"), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        KafkaBroker.start(Path(name) / "kafka", lasting=True) as broker,
        Postgres.start(Path(name) / "postgres") as server,
    ):
        folder = Path(name)
        lakes: list[Lake] = [IcebergLake(server, folder / "iceberg"), DeltaLake(folder / "delta")]
        lakes = [lake for lake in lakes if lake.kind in given.formats]
        for size, mode in product(given.sizes, given.modes):
            records = int(given.gigabytes * _SHARE[mode] * 1e9 / size)
            made = values(size, min(_KEYS, records))
            source = make_source(broker.bootstrap, f"source-{mode}-{size}", made, records, PARTITIONS)
            keys = len({value[:_KEY_BYTES] for value in made}) if mode == "upsert" else None
            per_epoch = EPOCH_BYTES[mode] // size
            stream = Stream(source, records, per_epoch, records * 2 // 5, keys)
            what = f"{records:,} rows of {size} bytes, {PARTITIONS} partitions, epochs of {per_epoch:,}"
            for lake in lakes:
                place = folder / f"{lake.kind}-{mode}-{size}"
                rounds = Rounds(broker.bootstrap, place, given.rounds, _arms(lake, mode), lake)
                print_drain(f"{_NAMES[lake.kind]}, {mode}: {what}", rounds.run(stream))
            topics.delete(broker.bootstrap, source)


def _arms(lake: Lake, mode: Mode) -> Sequence[Arm]:
    own = "own streaming sink" if mode == "append" else "MERGE in foreachBatch"
    return OwnArm(f"{_NAMES[lake.kind]}'s {own}", lake, mode), OurArm(f"ours, {mode}", lake, mode)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-lakes", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.4, help="that each run copies")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    parser.add_argument("--formats", nargs="*", default=list(_NAMES), choices=list(_NAMES))
    parser.add_argument("--modes", nargs="*", default=["append", "upsert"], choices=["append", "upsert"])
    return parser.parse_args()


def _key(mode: Mode) -> dict[str, Any]:
    return {"key": KEY} if mode == "upsert" else {}


def _named(target: str) -> str:
    """Return a name that SQL takes without quotes."""
    return target.replace("-", "_")


def _jars(kind: str) -> list[str]:
    found = jars.resolve(*jars.SPARK_ICEBERG) if kind == "iceberg" else delta_jars()
    return ["--driver-class-path", ":".join(map(str, found))]


if __name__ == "__main__":
    main()
