"""A planted secret, searched for wherever a real Airflow and a real driver leave anything."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import topics
from tests.listening_broker import listening_broker
from tests.live.client_sink import client_sink
from tests.live.people import ROLES, Person
from tests.live.sinks_in_airflow import TASK, AirflowSink

_CANARY = f"canary{uuid.uuid4().hex}"
_BEFORE_BYTES = 300
_USER, _OTHER = "sinks", "others"
_GIVEN, _FOREIGN = "sinks_secret_canary", "secret_of_others"
"""Variables: one that an alteration may read, and one that it may not."""
_FORM = "alter_canary"
_FORM_FILE = f"""
from airflow_provider_sinks.forms import alter_connection_dag

form = alter_connection_dag({_FORM!r})
"""
_LOOKUP: dict[str, Any] = {
    "lookups": {"tables": {"postgres": {"connection": "pg_canary", "table": "pg_catalog.pg_tables"}}},
    "query": "SELECT value, tablename FROM source LEFT JOIN tables ON tablename = value",
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that demands a password of two users."""
    sasl = Sasl(Mechanism.SCRAM_SHA_512, {_USER: f"right{_CANARY}", _OTHER: f"given{_CANARY}"})
    with KafkaBroker.start(tmp_path / "kafka", sasl=sasl) as running:
        yield running


def test_no_secret_stands_anywhere(airflow: AirflowStack, guarded: KafkaBroker, postgres: Postgres) -> None:
    sink = planted(airflow, guarded, postgres)
    run = sink.start()
    with sink.fed_all_the_time():
        sink.wait_running(1)
        seen = processes(sink)
        altered = altered_by_each_role(sink)
        sink.wait_running(2)
        sink.change_connection(**login(guarded, _USER) | {"sasl.password": f"wrong{_CANARY}"})
        sink.wait_task(run, "failed")
    sink.wait_no_driver()

    assert "refused the credentials" in airflow.task_log(run, TASK)
    kept = {**seen, **files(airflow.home), **database(airflow), **answers(sink, run), **records(sink)}
    kept |= shown_to(Person(airflow, "viewer"), [run, *altered])
    secrets = (_CANARY.encode(), postgres.password.encode())
    found = [(place, around(content, secret)) for place, content in kept.items() for secret in secrets]
    assert [(place, text) for place, text in found if text] == []
    searched = ("status.json", "offsets", f"{TASK}/attempt=1", "argv of", "api-server")
    tables = ("table xcom", "table log", "table rendered_task_instance_fields", "table dag_run")
    for part in (*searched, *tables, "eventLogs", "plan/xcomEntries/return_value", "apply/logs"):
        assert any(part in place for place in kept), f"{part} was not searched"


def around(content: bytes, secret: bytes) -> bytes:
    """Return the secret with what stands before it, or nothing."""
    at = content.find(secret)
    return content[max(0, at - _BEFORE_BYTES) : at + len(secret)] if at >= 0 else b""


def planted(airflow: AirflowStack, broker: KafkaBroker, postgres: Postgres) -> AirflowSink:
    """A sink whose connections hold secrets."""
    airflow.add_connection("spark_canary", "spark", host="local[1,4]")
    airflow.add_connection("pg_canary", "postgres", **postgres.connection_fields)
    sink = client_sink(airflow, broker, "canary", "spark_canary", arguments={"retries": 0}, **_LOOKUP)
    sink.change_connection(**login(broker, _USER))
    airflow.add_variable(_GIVEN, f"given{_CANARY}")
    airflow.add_variable(_FOREIGN, f"foreign{_CANARY}")
    (airflow.dags_folder / f"{_FORM}.py").write_text(_FORM_FILE)
    return sink


def altered_by_each_role(sink: AirflowSink) -> list[DagRun]:
    """Let a viewer, a user and an op fill in the form, each as far as it goes; return the runs."""
    sink.airflow.unpause(_FORM)
    viewer, user, op = (Person(sink.airflow, role) for role in ROLES)
    order = {"conn_id": sink.conn_id, "dry_run": False}
    anew = login(sink.broker, _OTHER) | {"sasl.password": {"secret": _GIVEN}}
    with listening_broker() as listener:
        away = {"bootstrap.servers": listener.address, "sasl.mechanism": "PLAIN"}
        foreign = {**away, "sasl.username": {"secret": _FOREIGN}}
        assert viewer.fill_in(_FORM, {**order, "set": away}).status_code == 403
        assert user.fill_in(_FORM, {**order, "set": foreign}).status_code == 400
        refused = user.trigger(_FORM, **order, set=away)
        assert sink.airflow.wait_for_run(refused) == "failed"
        assert listener.logins == []
    done = op.trigger(_FORM, **order, set=anew)
    assert sink.airflow.wait_for_run(done) == "success", sink.airflow.task_log(done, "apply")
    return [refused, done]


def login(broker: KafkaBroker, user: str) -> dict[str, Any]:
    return {name: str(value) for name, value in broker.client_config(user).items()}


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
    """Logs, launches and checkpoints."""
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # Airflow and Spark tidy up while we look
            if path.is_file() and not path.is_symlink():
                found[str(path)] = path.read_bytes()
    return found


def database(airflow: AirflowStack) -> dict[str, bytes]:
    """Each table of the metadata database, the state stores and XComs among them."""
    return {f"table {name}": repr(rows).encode() for name, rows in airflow.metadata.tables().items()}


def answers(sink: AirflowSink, run: DagRun) -> dict[str, bytes]:
    """What Airflow shows to everybody."""
    task = f"{run.path}/taskInstances/{TASK}"
    paths = [task, f"{task}/xcomEntries", f"{task}/links", f"dags/{run.dag_id}/details", "variables"]
    shown = {path: repr(sink.airflow.call("GET", path)).encode() for path in paths}
    return {**shown, "status": repr(sink.shown()).encode(), "log": sink.airflow.task_log(run, TASK).encode()}


def shown_to(person: Person, runs: list[DagRun]) -> dict[str, bytes]:
    """What somebody with few rights gets to see: the event log, and of each run all that there is."""
    found: dict[str, object] = {"eventLogs": person.everything("eventLogs", "event_logs")}
    for run in runs:
        tasks = person.everything(f"{run.path}/taskInstances", "task_instances")
        found |= {run.path: person.ask("GET", run.path).json(), f"{run.path}/taskInstances": tasks}
        for task in tasks:
            place = f"{run.path}/taskInstances/{task['task_id']}"
            entries = person.everything(f"{place}/xcomEntries", "xcom_entries")
            kept = [f"{place}/xcomEntries/{entry['key']}" for entry in entries]
            logs = [f"{place}/logs/{number}" for number in range(1, task["try_number"] + 1)]
            found |= {path: person.ask("GET", path).raise_for_status().text for path in (*kept, *logs)}
    return {f"{path} as {person.role}": repr(shown).encode() for path, shown in found.items()}


def records(sink: AirflowSink) -> dict[str, bytes]:
    names = (f"{sink.name}_out", f"_sinks-progress-{sink.name}")
    found = {name: topics.read(sink.client, name, topics.UNCOMMITTED) for name in names}
    return {
        f"topic {name}": b"".join((record.key or b"") + (record.value or b"") for record in read)
        for name, read in found.items()
    }
