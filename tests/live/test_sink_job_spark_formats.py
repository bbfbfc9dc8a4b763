"""Sinks that Spark's own writer writes, and what its guarantee holds when a driver dies on the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.spark_format.formats import format_of
from airflow_provider_sinks.connectors.spark_format.jdbc import jdbc_options
from airflow_provider_sinks.connectors.spark_format.storage import (
    FarStorage,
    HadoopStorage,
    LocalStorage,
    Storage,
)
from airflow_provider_sinks.connectors.spark_format.writing import write_rows
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.files import STATUS_NAME
from airflow_provider_sinks.core.progress.record import ProgressRecord
from tests.asking_postgres import asking_postgres
from tests.live.stage import KeyValue, Sink, Stage

_SCHEMA = "id long, name string"
_TABLE = "public.spark_orders"
_PASSWORDS_OF_PGJDBC = "org.postgresql.pgpassfile"
"""Where it looks instead of in ``~/.pgpass``."""


def _rows(*ids: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}, "name": "n{number}"}}') for number in ids]


def _sink(stage: Stage, source: str, target: dict[str, Any], **parts: Any) -> Sink:
    sink = stage.sink("spark", source, from_={"schema": _SCHEMA}, target={"spark": target}, **parts)
    sink.spec = {**sink.spec, "checkpoint": str(sink.checkpoints)}
    return sink


def _files(stage: Stage, kind: str, **options: str) -> dict[str, Any]:
    return {"format": kind, "path": str(stage.folder / "lake" / "orders"), "options": options}


def _forget_record(sink: Sink) -> None:
    """Leave what a driver leaves that is killed behind its rows: an epoch that is begun, and uncommitted."""
    newest = max(sink.checkpoints.glob("*/progress/*.json"))
    assert ProgressRecord.decode(json.loads(newest.read_text())["records"]["all"].encode()).epoch
    newest.unlink()
    (sink.launches[-1].files.directory / STATUS_NAME).unlink()  # nor has Airflow heard of it
    for commits in sink.checkpoints.glob("*/*/commits"):
        newest = max(
            (path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
        )
        newest.unlink()
        (commits / f".{newest.name}.crc").unlink(missing_ok=True)


def _listed(stage: Stage) -> list[int]:
    """Return what a reader gets that uses the log of Spark's file sink."""
    folder = stage.folder / "lake" / "orders"
    logs = [path for path in (folder / "_spark_metadata").iterdir() if path.name.isdigit()]
    lines = [line for path in logs for line in path.read_text().splitlines()[1:]]
    return _read([folder / Path(json.loads(line)["path"]).name for line in lines])


def _lying(stage: Stage) -> list[int]:
    """Return what all other readers get."""
    return _read((stage.folder / "lake" / "orders").glob("*.parquet"))


def _read(files: Any) -> list[int]:
    return sorted(id_ for path in files for id_ in pq.read_table(path)["id"].to_pylist())


@pytest.fixture
def table(stage: Stage) -> Iterator[psycopg.Connection[Any]]:
    with stage.postgres.connect() as connection:
        connection.execute(f"CREATE TABLE {_TABLE} (id bigint, name text)")
        yield connection
        connection.execute(f"DROP TABLE {_TABLE}")


def _ids(connection: psycopg.Connection[Any]) -> list[int]:
    return [id_ for (id_,) in connection.execute("SELECT id FROM public.spark_orders ORDER BY id").fetchall()]


def test_files_are_written_once_over_starts_and_a_kill_behind_the_batch_repeats_none(stage: Stage) -> None:
    source = stage.source("files", {0: _rows(0, 1), 1: _rows(2)})
    sink = _sink(stage, source, _files(stage, "parquet", compression="zstd"))
    sink.run()
    _forget_record(sink)
    stage.produce(source, [(1, *_rows(3)[0])])

    status = sink.run()

    assert _listed(stage) == _lying(stage) == [0, 1, 2, 3]
    assert status.epoch == 2


def test_a_kill_before_the_log_of_the_batch_leaves_files_that_only_other_readers_see(stage: Stage) -> None:
    sink = _sink(stage, stage.source("torn", {0: _rows(0, 1)}), _files(stage, "parquet"))
    sink.run()
    _forget_record(sink)
    shutil.rmtree(stage.folder / "lake" / "orders" / "_spark_metadata")

    status = sink.run()

    assert (status.epoch, status.rows_total) == (1, 2)
    assert _listed(stage) == [0, 1]
    assert _lying(stage) == [0, 0, 1, 1]


def test_a_new_checkpoint_of_spark_drops_no_row_that_its_file_sink_would_take_for_written(
    stage: Stage,
) -> None:
    source = stage.source("renewed", {0: _rows(0, 1)})
    sink = _sink(stage, source, _files(stage, "parquet"))
    sink.run()
    for folder in sink.checkpoints.glob("*/1-*"):
        shutil.rmtree(folder)
    stage.produce(source, [(0, *_rows(2)[0])])

    status = sink.run()

    assert (status.epoch, status.rows_total) == (2, 3)
    assert _listed(stage) == [0, 1, 2]


def test_a_lost_checkpoint_is_refused_as_airflow_remembers_and_a_way_on_goes_on_behind_it(
    stage: Stage,
) -> None:
    source = stage.source("lost", {0: _rows(0, 1)})
    sink = _sink(stage, source, _files(stage, "parquet"))
    sink.run()
    shutil.rmtree(sink.checkpoints)
    stage.produce(source, [(0, *_rows(2)[0])])

    refused = sink.fail(ExitCode.REFUSED)
    sink.run(sink.code(refused, "resume_from_witness"))

    assert refused.error is not None
    assert refused.error.primary == f'progress of sink "{sink.parsed.name}" is lost'
    assert _listed(stage) == [0, 1, 2]


def test_rows_go_to_jdbc_once_over_starts_and_again_behind_a_kill(
    stage: Stage, table: psycopg.Connection[Any]
) -> None:
    source = stage.source("jdbc", {0: _rows(0, 1)})
    sink = _sink(stage, source, {"format": "jdbc", "connection": "pg", "table": _TABLE})
    sink.run()
    stage.produce(source, [(0, *_rows(2)[0])])
    sink.run()
    assert _ids(table) == [0, 1, 2]

    _forget_record(sink)
    status = sink.run()

    assert (status.epoch, status.rows_total) == (2, 3)
    assert _ids(table) == [0, 1, 2, 2]


def test_jdbc_tells_no_server_a_password_of_the_machine(spark_session: SparkSession, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text("*:*:*:*:password-of-the-machine\n")
    passwords.chmod(0o600)
    properties: Any = spark_session._jvm.System  # type: ignore[union-attr]
    with asking_postgres() as server:
        options = PostgresOptions.from_connection(
            "pg", host="127.0.0.1", port=server.port, login="me", password=None, schema="d", extra={}
        )
        properties.setProperty(_PASSWORDS_OF_PGJDBC, str(passwords))
        try:
            with pytest.raises(Py4JJavaError):
                write_rows(spark_session.range(1), format_of("jdbc"), None, jdbc_options(options, _TABLE))
        finally:
            properties.clearProperty(_PASSWORDS_OF_PGJDBC)

    assert server.heard == [b"\0"]


@pytest.mark.parametrize("kind", ["orc", "csv", "json", "console", "noop"])
def test_any_format_counts_its_rows(stage: Stage, kind: str) -> None:
    has_files = kind not in ("console", "noop")
    target = _files(stage, kind) if has_files else {"format": kind}
    sink = _sink(stage, stage.source(kind, {0: _rows(0, 1), 1: _rows(2)}), target)

    status = sink.run()

    assert (status.epoch, status.rows_total) == (1, 3)
    assert len(list((stage.folder / "lake").rglob(f"part-*.{kind}"))) == (2 if has_files else 0)


def test_a_record_that_does_not_parse_stops_the_sink_before_a_row_is_visible(stage: Stage) -> None:
    source = stage.source("broken", {0: [*_rows(0), ("k", "no JSON")]})
    sink = _sink(stage, source, _files(stage, "parquet"))

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert f"Record {source}/0 at offset 1: " in error.primary
    assert not (stage.folder / "lake" / "orders" / "_spark_metadata" / "0").exists()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ({"format": "no.such.format"}, "Spark has no such format"),
        ({"format": "text", "path": "/nowhere"}, "format text takes one column of type string"),
        ({"format": "csv", "path": "/nowhere"}, "format csv takes no nested columns"),
    ],
)
def test_what_a_format_cannot_take_is_said_before_the_start(
    stage: Stage, target: dict[str, Any], told: str
) -> None:
    source = stage.source("unfit", {0: _rows(0)})
    sink = _sink(stage, source, target, select=["id", "array(name) AS names"])

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert error.primary == told


@pytest.mark.parametrize("side", ["this machine", "a driver", "Airflow"])
def test_a_file_system_gives_a_name_once_whoever_asks(
    side: str, tmp_path: Path, spark_session: SparkSession
) -> None:
    place = (tmp_path / "kept").as_uri()
    made: dict[str, Storage] = {
        "this machine": LocalStorage(),
        "a driver": HadoopStorage(spark_session),
        "Airflow": FarStorage(place),
    }
    storage = made[side]

    assert storage.sizes(f"{place}/a") is None
    assert storage.read(f"{place}/a/1") is None
    assert [storage.create(f"{place}/a/1", data) for data in (b"one", b"two")] == [True, False]
    assert storage.create(f"{place}/a/2", b"two!")

    assert storage.read(f"{place}/a/1") == b"one"
    assert {name: size for name, size in (storage.sizes(f"{place}/a") or {}).items() if name[0] != "."} == {
        "1": 3,
        "2": 4,
    }
    storage.remove(f"{place}/a/1")
    storage.remove(f"{place}/a")
    storage.remove(f"{place}/a")
    assert storage.sizes(f"{place}/a") is None
