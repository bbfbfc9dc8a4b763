"""An attack in a real Airflow: who may trigger DAGs has secrets sent to a server of his own.

The authors of the DAGs wrote templates. Their user, who may read no connection, fills them in. The shipped
forms are attacked in ``test_roles.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.airflow import AirflowStack
from tests.listening_broker import Listener, listening_broker, listening_database
from tests.live.people import Person

TASK = "steal"
STATEMENT, OPERATOR, DRY_RUN = "stolen_by_statement", "stolen_by_operator", "stolen_by_dry_run"
VALIDATION, SINKS_VALIDATION, SINK = "stolen_by_validation", "stolen_by_sinks_validation", "stolen_by_sink"
AUTHOR = "sent_by_its_author"
_FILE = """
import datetime

from airflow.sdk import DAG

from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

START = datetime.datetime(2025, 1, 1)
CONN_ID = {"conn_id": "{{ dag_run.conf['conn_id'] }}"}
CHANGES = {**CONN_ID, "set": "{{ dag_run.conf['set'] | tojson }}"}
SINK = {"sink": "{{ dag_run.conf['sink'] | tojson }}"}

with DAG("stolen_by_statement", schedule=None, start_date=START):
    AlterConnectionRestartOperator(task_id="steal", statement="{{ dag_run.conf['statement'] }}")
with DAG("stolen_by_operator", schedule=None, start_date=START):
    AlterConnectionRestartOperator(task_id="steal", **CHANGES)
with DAG("stolen_by_dry_run", schedule=None, start_date=START):
    AlterConnectionRestartOperator(task_id="steal", dry_run=True, **CHANGES)
with DAG("stolen_by_validation", schedule=None, start_date=START):
    ValidateConnectionOperator(task_id="steal", **CONN_ID)
with DAG("stolen_by_sinks_validation", schedule=None, start_date=START):
    ValidateConnectionOperator(task_id="steal", **SINK)
with DAG("stolen_by_sink", schedule=None, start_date=START):
    SubmitSinkJobOperator(task_id="steal", **SINK)
with DAG("sent_by_its_author", schedule=None, start_date=START):
    AlterConnectionRestartOperator(task_id="steal", dry_run=True, keep_secrets=True, **CHANGES)
"""
KAFKA, DATABASE, FOREIGN = "kafka_to_steal", "pg_to_steal", "variable_to_steal"
SECRETS = {name: f"{name}{uuid.uuid4().hex}" for name in (KAFKA, DATABASE, FOREIGN)}
_TO_KAFKA = {"bootstrap.servers": "<kafka>"}
_TO_DATABASE = {"host": "<host>", "port": "<port>", "sslmode": "disable"}
_TOPIC = {"connection": KAFKA, "topic": "orders"}
_SINK = {"name": "orders", "source": f"{KAFKA}/orders", "target": f"{KAFKA}/orders-out"}
_AT_ADDRESS: dict[str, Any] = {**_SINK, "source": "<kafka>/orders"}
_BY_OPTION: dict[str, Any] = {
    **_SINK,
    "source": {"kafka": {**_TOPIC, "options": {"kafka.bootstrap.servers": "<kafka>"}}},
}
_LOOKED_UP: dict[str, Any] = {
    **_SINK,
    "source": {"kafka": {**_TOPIC, "format": "text"}},
    "query": "SELECT value FROM source LEFT JOIN users ON name = value",
    "lookups": {"users": {"postgres": {"connection": "<host>:<port>", "table": "public.users"}}},
}


@dataclass(frozen=True)
class Attackers:
    """A broker and a database of the user's own."""

    broker: Listener
    database: Listener

    def filled_in(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the user fills in, with their addresses in place."""
        text = json.dumps(conf).replace("<kafka>", self.broker.address)
        text = text.replace("<host>", self.database.host).replace("<port>", str(self.database.port))
        return dict(json.loads(text))

    @property
    def visits(self) -> int:
        """How often somebody connected."""
        return self.broker.visits + self.database.visits


@pytest.fixture
def attackers() -> Iterator[Attackers]:
    with ExitStack() as stack:
        yield Attackers(stack.enter_context(listening_broker()), stack.enter_context(listening_database()))


@pytest.fixture(scope="module")
def guarded(airflow: AirflowStack) -> Iterator[AirflowStack]:
    """An Airflow with the DAGs, two connections that hold a password, and a Variable of somebody else."""
    file = airflow.dags_folder / "stolen_secrets.py"
    file.write_text(_FILE)
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "old", "sasl.password": SECRETS[KAFKA]}
    way = {"bootstrap.servers": "old:9092", "security.protocol": "SASL_PLAINTEXT"}
    fields = {"host": "pg.old", "port": 5432, "login": "old", "schema": "shop"}
    airflow.add_connection(KAFKA, "kafka", extra={**way, **login})
    secure = {"sslmode": "require"}
    airflow.add_connection(DATABASE, "postgres", **fields, password=SECRETS[DATABASE], extra=secure)
    airflow.add_variable(FOREIGN, SECRETS[FOREIGN])
    yield airflow
    file.unlink()
    for path in (f"connections/{KAFKA}", f"connections/{DATABASE}", f"variables/{FOREIGN}"):
        airflow.call("DELETE", path)


def stored(airflow: AirflowStack) -> list[dict[str, Any]]:
    """Return the two connections as Airflow shows them, and what else was made of their names."""
    asked = {"connection_id_pattern": "%to_steal%", "order_by": "conn_id"}
    return list(airflow.call("GET", "connections", **asked)["connections"])


def changed(conn_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"conn_id": conn_id, "set": dict(options)}


def said(conn_id: str, changes: str) -> dict[str, Any]:
    return {"statement": f"ALTER CONNECTION {conn_id} {changes}"}


_ANEW = "sasl.password: must be given anew: bootstrap.servers would change"
_DATABASE_ANEW = "password: must be given anew: host and port and sslmode would change"
_NO_ID = "is not an Airflow connection id"
_NO_SECRET, _NOT_FOR_IT = "is no secret", "does not begin with sinks_secret_"
_AS_USER = {**_TO_KAFKA, "sasl.username": {"secret": FOREIGN}}
_AS_PASSWORD = {**_TO_KAFKA, "sasl.password": {"secret": FOREIGN}}
_STATED = "SET (host '<host>', port '<port>', sslmode 'disable')"
ATTACKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "statement": (STATEMENT, said(KAFKA, "SET (bootstrap.servers '<kafka>')"), _ANEW),
    "statement that only looks": (
        STATEMENT,
        said(KAFKA, "SET (bootstrap.servers '<kafka>') WITH (DRY RUN)"),
        _ANEW,
    ),
    "statement with a foreign Variable": (
        STATEMENT,
        said(KAFKA, f"SET (bootstrap.servers '<kafka>', sasl.password SECRET {FOREIGN})"),
        _NOT_FOR_IT,
    ),
    "statement that keeps secrets": (
        STATEMENT,
        said(KAFKA, "SET (bootstrap.servers '<kafka>') WITH (KEEP_SECRETS)"),
        "WITH does not take KEEP SECRETS",
    ),
    "statement about a database": (STATEMENT, said(DATABASE, _STATED), _DATABASE_ANEW),
    "operator": (OPERATOR, changed(KAFKA, _TO_KAFKA), _ANEW),
    "operator that only looks": (DRY_RUN, changed(KAFKA, _TO_KAFKA), _ANEW),
    "operator with a foreign Variable": (OPERATOR, changed(KAFKA, _AS_USER), _NO_SECRET),
    "operator that looks with a foreign Variable": (DRY_RUN, changed(KAFKA, _AS_PASSWORD), _NOT_FOR_IT),
    "operator about a database": (OPERATOR, changed(DATABASE, _TO_DATABASE), _DATABASE_ANEW),
    "operator that looks at a database": (DRY_RUN, changed(DATABASE, _TO_DATABASE), _DATABASE_ANEW),
    "validation of an address": (VALIDATION, {"conn_id": "<kafka>"}, "does not exist"),
    "validation of a sink at an address": (SINKS_VALIDATION, {"sink": _AT_ADDRESS}, _NO_ID),
    "validation of a sink by an option": (SINKS_VALIDATION, {"sink": _BY_OPTION}, "cannot be set"),
    "validation of a sink with a lookup": (SINKS_VALIDATION, {"sink": _LOOKED_UP}, _NO_ID),
    "sink at an address": (SINK, {"sink": _AT_ADDRESS}, _NO_ID),
    "sink by an option": (SINK, {"sink": _BY_OPTION}, "cannot be set"),
}


@pytest.mark.parametrize(("dag_id", "conf", "refusal"), ATTACKS.values(), ids=ATTACKS)
def test_no_template_leads_a_stored_secret_to_its_users_server(
    guarded: AirflowStack, attackers: Attackers, dag_id: str, conf: dict[str, Any], refusal: str
) -> None:
    before = stored(guarded)
    assert [one["connection_id"] for one in before] == [KAFKA, DATABASE]

    run = Person(guarded, "user").trigger(dag_id, **attackers.filled_in(conf))

    assert guarded.wait_for_run(run) == "failed"
    log = guarded.task_log(run, TASK)
    assert refusal in log
    assert [name for name, secret in SECRETS.items() if secret in log] == []
    assert attackers.visits == 0
    assert stored(guarded) == before


@pytest.mark.parametrize("verb", ["check", "plan", "describe"])
def test_no_command_takes_a_server_from_a_file_of_its_user(
    guarded: AirflowStack, attackers: Attackers, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "sinks.yaml").write_text(yaml.safe_dump({"sinks": [attackers.filled_in(_AT_ADDRESS)]}))
    command = [sys.executable, "-m", "airflow", "sinks", verb, "orders", "--folder", str(tmp_path)]

    done = subprocess.run(command, env=guarded.environment, capture_output=True, text=True, check=False)

    assert done.returncode == ExitCode.CONFIGURATION, done.stderr
    assert f'folder {tmp_path} has no valid sink "orders"' in done.stderr
    assert attackers.visits == 0


@pytest.mark.parametrize(
    ("conn_id", "moved"), [(KAFKA, _TO_KAFKA), (DATABASE, _TO_DATABASE)], ids=["broker", "database"]
)
def test_its_author_alone_may_send_it_elsewhere(
    guarded: AirflowStack, attackers: Attackers, conn_id: str, moved: dict[str, str]
) -> None:
    """So the attackers do hear what is sent to them, and their silence proves something."""
    before = stored(guarded)

    run = Person(guarded, "user").trigger(AUTHOR, **attackers.filled_in(changed(conn_id, moved)))
    guarded.wait_for_run(run)

    heard = attackers.broker.logins if conn_id == KAFKA else attackers.database.logins
    assert ("old", SECRETS[conn_id]) in heard, guarded.task_log(run, TASK)
    assert stored(guarded) == before
