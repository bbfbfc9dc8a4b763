"""The shipped forms in the hands of a viewer, a user and an op, in a real Airflow."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from tests.listening_broker import Listener, listening_broker
from tests.live.people import MAY_READ, MAY_SEE, MAY_TRIGGER, ROLES, Person

DAGS = Path(__file__).parents[3] / "dags"
SHIPPED: dict[str, dict[str, Any]] = {
    "alter_connection": {"conn_id": "kafka_prod", "set": {"client.id": "other"}},
    "pause_or_resume_sink": {"sink": "orders"},
    "rewind_sink": {"sink": "orders", "epoch": 1},
    "reset_sink": {"sink": "orders"},
    "run_sink_once": {},
    "run_sink_once_into_a_table": {},
    "replay_dead_letters": {"sink": "orders"},
}
FILES = ("alter_connection.py", "sink_forms.py", "run_sink_once.py", "replay_dead_letters.py")
BY_TLS = "kafka_by_tls"
"""A connection that is only attacked: it says that its password is sent encrypted."""
FOR_OPS, FOR_TLS, FOR_STREAMING = "alter_by_ops", "alter_by_tls", "alter_by_streaming"
GRANTED = {"Streaming": {"DAGs": {"can_read", "can_edit"}}}
GRANTED_BY_DEFAULT = {
    "Op": {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_create"}},
    "User": {"DAGs": {"can_read"}},
    "Viewer": {"DAGs": {"can_read"}},
}
_MORE_FORMS = f"""
from airflow_provider_sinks.forms import alter_connection_dag

for_ops = alter_connection_dag({FOR_OPS!r}, users=["op"], approvers={{"op": "Op"}})
for_tls = alter_connection_dag({FOR_TLS!r}, connections=[{BY_TLS!r}])
for_streaming = alter_connection_dag({FOR_STREAMING!r}, access_control={GRANTED!r})
"""
_SINKS = """
sinks:
  - {name: orders, source: kafka_prod/orders, target: kafka_prod/orders-out}
"""
"""A file that no DAG reads: the forms find the names in it."""
OLD, NEW = "old", "new"
PASSWORDS = {user: f"{user}{uuid.uuid4().hex}" for user in (OLD, NEW)}
STORED, GIVEN = "other_secret", "sinks_secret_kafka"
"""Variables: one that no alteration may read, and one that is there for it."""
FOREIGN = f"foreign{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that knows two users."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker.start(folder, sasl=Sasl(Mechanism.SCRAM_SHA_512, PASSWORDS)) as running:
        yield running


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening_broker() as listening:
        yield listening


@pytest.fixture(scope="module")
def forms(airflow: AirflowStack, broker: KafkaBroker) -> Iterator[AirflowStack]:
    """An Airflow with the shipped forms and those of `_MORE_FORMS`, their connections, two Variables."""
    sinks = airflow.dags_folder / "sinks_of_the_forms.yaml"
    sinks.write_text(_SINKS)
    for name in FILES:
        shutil.copy(DAGS / name, airflow.dags_folder / name)
    (airflow.dags_folder / f"{FOR_OPS}.py").write_text(_MORE_FORMS)
    airflow.add_connection("kafka_prod", "kafka", extra=login(broker, OLD))
    airflow.add_connection(BY_TLS, "kafka", extra={**login(broker, OLD), "security.protocol": "SASL_SSL"})
    airflow.add_variable(STORED, FOREIGN)
    airflow.add_variable(GIVEN, PASSWORDS[NEW])
    for dag_id in (*SHIPPED, FOR_OPS, FOR_TLS, FOR_STREAMING):
        airflow.unpause(dag_id)
    yield airflow
    for name in (*FILES, f"{FOR_OPS}.py"):
        (airflow.dags_folder / name).unlink()
    sinks.unlink()
    for conn_id in ("kafka_prod", BY_TLS):
        airflow.call("DELETE", f"connections/{conn_id}")


@dataclass(frozen=True)
class Attack:
    """Options that lead the stored password, or a foreign Variable, to a server of the attacker.

    :param moved: which of them decide who hears the password; empty where the form itself refuses them.
    """

    more: Mapping[str, Any]
    moved: str = ""
    conn_id: str = "kafka_prod"
    form: str = "alter_connection"

    @property
    def said(self) -> str:
        """What the alteration says of the only secret that is stored."""
        return f"sasl.password: must be given anew: {self.moved} would change"

    def options(self, listener: Listener) -> dict[str, Any]:
        return {"bootstrap.servers": listener.address, "sasl.mechanism": "PLAIN", **self.more}


ATTACKS = {
    "the stored password": Attack({}, "bootstrap.servers and sasl.mechanism"),
    "for another user": Attack(
        {"sasl.username": "me"}, "bootstrap.servers and sasl.mechanism and sasl.username"
    ),
    "a foreign Variable": Attack({"sasl.username": {"secret": STORED}}),
    "both anew, one foreign": Attack(
        {"sasl.username": {"secret": STORED}, "sasl.password": {"secret": STORED}}
    ),
    "in clear protocol": Attack(
        {"security.protocol": "SASL_PLAINTEXT"},
        "bootstrap.servers and sasl.mechanism and security.protocol",
        BY_TLS,
        FOR_TLS,
    ),
}


def login(broker: KafkaBroker, user: str) -> dict[str, str]:
    return {name: str(value) for name, value in broker.client_config(user).items()}


def options(forms: AirflowStack, conn_id: str = "kafka_prod") -> dict[str, Any]:
    """Return the options of a connection; its secrets are masked."""
    return dict(json.loads(forms.call("GET", f"connections/{conn_id}")["extra"]))


def ended(forms: AirflowStack, run: DagRun) -> str:
    """Return how a run ended, once it has."""
    return forms.wait_for_run(run)


@pytest.mark.parametrize("form", SHIPPED)
@pytest.mark.parametrize("role", ROLES)
def test_who_may_trigger_a_shipped_form(forms: AirflowStack, role: str, form: str) -> None:
    answer = Person(forms, role).fill_in(form, SHIPPED[form])

    assert answer.status_code == MAY_TRIGGER[role], answer.text


@pytest.mark.parametrize("role", ROLES)
def test_the_simple_auth_manager_does_not_look_at_access_control(forms: AirflowStack, role: str) -> None:
    """None of these roles is named there, and each may what it may with every other form."""
    person = Person(forms, role)

    assert person.ask("GET", f"dags/{FOR_STREAMING}").status_code == MAY_SEE[role]
    answer = person.fill_in(FOR_STREAMING, SHIPPED["alter_connection"])
    assert answer.status_code == MAY_TRIGGER[role], answer.text


@pytest.mark.parametrize("form", [*SHIPPED, FOR_STREAMING])
def test_what_a_form_grants_stands_in_airflows_database(forms: AirflowStack, form: str) -> None:
    """From there Airflow hands it to the FAB auth manager, which no test has."""
    query = "SELECT data FROM serialized_dag WHERE dag_id = %s ORDER BY created_at DESC LIMIT 1"
    assert forms.metadata.postgres is not None
    with forms.metadata.postgres.connect("airflow") as database:
        row = database.execute(query, [form]).fetchone()

    assert row is not None
    granted = GRANTED if form == FOR_STREAMING else GRANTED_BY_DEFAULT
    assert deserialized(row[0]["dag"]["access_control"]) == granted


def deserialized(value: Any) -> Any:
    """Return what Airflow wrote with the types of its parts."""
    match value:
        case {"__type": "dict", "__var": parts}:
            return {name: deserialized(part) for name, part in parts.items()}
        case {"__type": "set", "__var": parts}:
            return set(parts)
    raise AssertionError(value)


def test_a_form_that_asks_for_a_sink_suggests_those_of_its_folder(forms: AirflowStack) -> None:
    for form in (form for form, fields in SHIPPED.items() if "sink" in fields):
        field = forms.call("GET", f"dags/{form}/details")["params"]["sink"]

        assert "orders" in field["schema"]["examples"], form


@pytest.mark.parametrize("role", ROLES)
def test_who_may_see_dags_runs_and_the_event_log(forms: AirflowStack, role: str) -> None:
    for path in ("dags", "dags/alter_connection/dagRuns", "eventLogs"):
        assert Person(forms, role).ask("GET", path).status_code == MAY_SEE[role], path


@pytest.mark.parametrize("role", ROLES)
def test_who_may_read_connections_and_variables(forms: AirflowStack, role: str) -> None:
    person = Person(forms, role)

    for path in ("connections", "connections/kafka_prod", "variables", f"variables/{STORED}"):
        assert person.ask("GET", path).status_code == MAY_READ[role], path


@pytest.mark.parametrize("role", ROLES)
def test_who_may_change_connections_and_variables(forms: AirflowStack, role: str) -> None:
    described = {"connection_id": BY_TLS, "conn_type": "kafka", "description": f"by {role}"}
    variable = {"key": STORED, "value": FOREIGN, "description": f"by {role}"}
    person = Person(forms, role)

    for path, body in ((f"connections/{BY_TLS}", described), (f"variables/{STORED}", variable)):
        answer = person.ask("PATCH", path, body, update_mask="description")
        assert answer.status_code == MAY_READ[role], answer.text


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize(("role", "dry_run"), [("user", True), ("op", False)], ids=["dry-run", "for-good"])
def test_no_form_leads_a_stored_secret_to_another_server(
    forms: AirflowStack, listener: Listener, role: str, attack: Attack, *, dry_run: bool
) -> None:
    before = options(forms, attack.conn_id)
    fields = {"conn_id": attack.conn_id, "set": attack.options(listener), "dry_run": dry_run}

    answer = Person(forms, role).fill_in(attack.form, fields)

    assert answer.status_code == (200 if attack.moved else 400), answer.text
    if attack.moved:
        run = DagRun(attack.form, answer.json()["dag_run_id"])
        assert ended(forms, run) == "failed"
        assert attack.said in forms.task_log(run, "plan")
    assert options(forms, attack.conn_id) == before
    assert listener.logins == []
    assert not any(listener.has_heard(secret) for secret in (*PASSWORDS.values(), FOREIGN))


def test_a_run_of_who_is_not_named_does_nothing_though_its_tasks_are_marked(
    forms: AirflowStack, listener: Listener
) -> None:
    before, user = options(forms), Person(forms, "user")
    run = user.trigger(FOR_OPS, conn_id="kafka_prod", set={"client.id": "eve"}, dry_run=False)
    assert ended(forms, run) == "failed"
    assert 'user "user" may not use this form' in forms.task_log(run, "plan")

    for task in ("plan", "approve"):
        marked = {"new_state": "success", "include_downstream": False}
        user.ask("PATCH", f"{run.path}/taskInstances/{task}", marked).raise_for_status()
    cleared = {"dry_run": False, "dag_run_id": run.run_id, "task_ids": ["decide", "apply"]}
    again = {"only_failed": False, "reset_dag_runs": True}
    user.ask("POST", f"dags/{FOR_OPS}/clearTaskInstances", {**cleared, **again}).raise_for_status()

    forms.wait_for_task(run, "apply", "failed")
    assert 'user "user" may not use this form' in forms.task_log(run, "apply")
    assert options(forms) == before
    assert listener.visits == 0


def test_only_who_is_named_approves(forms: AirflowStack) -> None:
    run = Person(forms, "op").trigger(FOR_OPS, conn_id="kafka_prod", reset=["client.id"], dry_run=False)
    forms.wait_for_task(run, "approve", "awaiting_input")
    answer = {"chosen_options": ["Reject"], "params_input": {}}
    question = f"{run.path}/taskInstances/approve/-1/hitlDetails"

    assert Person(forms, "user").ask("PATCH", question, answer).status_code == 403
    assert Person(forms, "op").ask("PATCH", question, answer).status_code == 200


def test_a_secret_in_clear_is_refused_at_the_form_and_stands_nowhere(forms: AirflowStack) -> None:
    clear = f"clear{uuid.uuid4().hex}"

    refused = Person(forms, "user").fill_in(
        "alter_connection", {"conn_id": "kafka_prod", "set": {"sasl.password": clear}}
    )

    assert refused.status_code == 400
    logged = Person(forms, "viewer").everything("eventLogs", "event_logs")
    assert not [entry for entry in logged if clear in repr(entry)]


def test_an_op_alters_with_every_secret_given_anew(forms: AirflowStack, broker: KafkaBroker) -> None:
    anew = {**login(broker, NEW), "sasl.password": {"secret": GIVEN}}

    run = Person(forms, "op").trigger("alter_connection", conn_id="kafka_prod", set=anew, dry_run=False)

    assert ended(forms, run) == "success", forms.task_log(run, "plan")
    assert options(forms)["sasl.username"] == NEW
