"""A planted secret, searched for wherever a real Airflow and a real driver leave anything."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_sinks.local.airflow import AirflowStack, DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import topics
from tests.live.client_sink import client_sink
from tests.live.sinks_in_airflow import TASK, AirflowSink

_CANARY = f"canary{uuid.uuid4().hex}"
_USER = "sinks"
_LOOKUP: dict[str, Any] = {
    "lookups": {"tables": {"postgres": {"connection": "pg_canary", "table": "pg_catalog.pg_tables"}}},
    "query": "SELECT value, tablename FROM source LEFT JOIN tables ON tablename = value",
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that demands a password."""
    sasl = Sasl(Mechanism.SCRAM_SHA_512, {_USER: f"right{_CANARY}"})
    with KafkaBroker.start(tmp_path / "kafka", sasl=sasl) as running:
        yield running


def test_no_secret_stands_anywhere(airflow: AirflowStack, guarded: KafkaBroker, postgres: Postgres) -> None:
    sink = planted(airflow, guarded, postgres)
    run = sink.start()
    with sink.fed_all_the_time():
        sink.wait_running(1)
        seen = processes(sink)
        sink.change_connection(**login(guarded, f"wrong{_CANARY}"))
        sink.wait_task(run, "failed")
    sink.wait_no_driver()

    assert "refused the credentials" in airflow.task_log(run, TASK)
    kept = {**seen, **files(airflow.home), **database(airflow.home), **answers(sink, run), **records(sink)}
    secrets = (_CANARY.encode(), postgres.password.encode())
    assert [place for place, content in kept.items() if any(secret in content for secret in secrets)] == []
    for part in ("status.json", "offsets", "airflow.db", f"{TASK}/attempt=1", "table xcom", "argv of"):
        assert any(part in place for place in kept), f"{part} was not searched"


def planted(airflow: AirflowStack, broker: KafkaBroker, postgres: Postgres) -> AirflowSink:
    """A sink whose connections hold secrets."""
    airflow.add_connection("spark_canary", "spark", host="local[1,4]")
    airflow.add_connection(
        "pg_canary",
        "postgres",
        host=postgres.host,
        port=postgres.port,
        login=postgres.user,
        password=postgres.password,
        schema=postgres.dbname,
    )
    sink = client_sink(airflow, broker, "canary", "spark_canary", arguments={"retries": 0}, **_LOOKUP)
    sink.change_connection(**login(broker, f"right{_CANARY}"))
    return sink


def login(broker: KafkaBroker, password: str) -> dict[str, str]:
    options = {name: str(value) for name, value in broker.client_config(_USER).items()}
    return {**options, "sasl.password": password}


def processes(sink: AirflowSink) -> dict[str, bytes]:
    """What everyone on the machine, or in the family, can see of the driver, its task and all around them."""
    (driver,) = sink.drivers()
    found = {}
    for process in [driver, *driver.children(recursive=True), *driver.parents()]:
        with contextlib.suppress(psutil.Error):
            found[f"argv of {process.pid}"] = "\0".join(process.cmdline()).encode()
            found[f"environment of {process.pid}"] = "\0".join(process.environ().values()).encode()
    return found


def files(folder: Path) -> dict[str, bytes]:
    """Logs, launches, checkpoints, and the database as it stands on disk."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path): path.read_bytes() for path in paths}


def database(home: Path) -> dict[str, bytes]:
    """Each table of the metadata database, the state stores and XComs among them."""
    with contextlib.closing(sqlite3.connect(home / "airflow.db", timeout=60)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            f"table {name}": repr(connection.execute(f'SELECT * FROM "{name}"').fetchall()).encode()  # noqa: S608
            for (name,) in names
        }


def answers(sink: AirflowSink, run: DagRun) -> dict[str, bytes]:
    """What Airflow shows to everybody."""
    task = f"{run.path}/taskInstances/{TASK}"
    paths = [task, f"{task}/xcomEntries", f"{task}/links", f"dags/{run.dag_id}/details", "variables"]
    shown = {path: repr(sink.airflow.call("GET", path)).encode() for path in paths}
    return {**shown, "status": repr(sink.shown()).encode(), "log": sink.airflow.task_log(run, TASK).encode()}


def records(sink: AirflowSink) -> dict[str, bytes]:
    names = (f"{sink.name}_out", f"_sinks-progress-{sink.name}")
    found = {name: topics.read(sink.client, name, topics.UNCOMMITTED) for name in names}
    return {
        f"topic {name}": b"".join((record.key or b"") + (record.value or b"") for record in read)
        for name, read in found.items()
    }
