"""An attack: who may fill in a form, but may read no connection, has secrets sent to a server of his own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from tests.airflow.altering import CONN_ID, OPTIONS, SECRET, make
from tests.airflow.api_server import account
from tests.airflow.attacks import (
    FOREIGN,
    FOREIGN_VALUE,
    NO_ID,
    VERBS,
    demand_refused_in_file,
    foreign_variable,
    run_on_file,
    unheard,
)
from tests.airflow.desk import Desk
from tests.airflow.fakes import SINK
from tests.listening_broker import Listener, listening_broker

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunDag, RunTask

FORM = {"conn_id": "{{ dag_run.conf['conn_id'] }}", "set": "{{ dag_run.conf['set'] | tojson }}"}
STATEMENT = {"statement": "{{ dag_run.conf['statement'] }}"}


@pytest.fixture
def broker() -> Iterator[Listener]:
    """The attacker's own server; it hears nothing, whatever a test does."""
    with unheard(listening_broker()) as listening:
        yield listening


@pytest.fixture
def api(airflow_url: str, connections: Callable[..., None]) -> Iterator[AirflowApi]:
    """Airflow with a connection that holds a password, and a Variable that is nobody's business."""
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        make(api)
        with foreign_variable(api):
            yield api


@pytest.fixture
def attack(dag: DAG, run_task: RunTask) -> Callable[..., Any]:
    """Run an alteration as a form does: its author wrote a template, its user fills it in."""
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    def run(filled_in: dict[str, Any], **written: Any) -> Any:
        task = AlterConnectionRestartOperator(task_id="alter", retries=2, dag=dag, **written)
        return run_task(task, filled_in)

    return run


def stored(api: AirflowApi) -> dict[str, Any]:
    row = api.find(f"connections/{CONN_ID}")
    assert row is not None
    return dict(json.loads(row["extra"]))


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({}, "sasl.password: must be given anew: bootstrap.servers would change", id="password"),
        pytest.param({"sasl.username": "me"}, "bootstrap.servers and sasl.username would", id="for a user"),
        pytest.param({"sasl.username": {"secret": FOREIGN}}, "sasl.username: is no secret", id="as a user"),
        pytest.param({"client.id": {"secret": FOREIGN}}, "client.id: is no secret", id="as an id"),
        pytest.param(
            {"sasl.password": {"secret": FOREIGN}}, "does not begin with sinks_secret_", id="foreign Variable"
        ),
        pytest.param(
            {"sasl.password": {"secret": "absent"}}, "does not begin with sinks_secret_", id="no Variable"
        ),
        pytest.param({"keep_secrets": True}, "keep_secrets: is not known", id="leave for himself"),
    ],
)
def test_a_form_sends_no_secret_to_its_users_server(
    attack: Callable[..., Any],
    api: AirflowApi,
    broker: Listener,
    more: dict[str, Any],
    said: str,
    *,
    dry_run: bool,
) -> None:
    form = {
        "conn_id": CONN_ID,
        "set": {"bootstrap.servers": broker.address, "sasl.mechanism": "PLAIN", **more},
    }

    result = attack(form, **FORM, dry_run=dry_run)

    assert result.state == "failed"
    assert said in str(result.error)
    assert FOREIGN_VALUE not in str(result.error)
    assert stored(api) == {**OPTIONS, "sasl.password": "***"}
    assert api.find(f"connections/{CONN_ID}.before") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("SET (bootstrap.servers '{server}') WITH (DRY RUN)", "sasl.password: must be given anew"),
        ("SET (metadata.broker.list '{server}')", "sasl.password: must be given anew"),
        (
            "SET (bootstrap.servers '{server}', sasl.password SECRET foreign) WITH (DRY RUN)",
            "does not begin with sinks_secret_",
        ),
        (
            "SET (bootstrap.servers '{server}', sasl.username SECRET foreign) WITH (DRY RUN)",
            "sasl.username: is no secret",
        ),
        ("SET (bootstrap.servers '{server}') WITH (KEEP_SECRETS)", "WITH does not take KEEP SECRETS"),
    ],
)
@pytest.mark.usefixtures("api")
def test_a_statement_sends_no_secret_to_its_users_server(
    attack: Callable[..., Any], broker: Listener, changes: str, said: str
) -> None:
    statement = f"ALTER CONNECTION {CONN_ID} {changes.format(server=broker.address)}"

    result = attack({"statement": statement}, **STATEMENT)

    assert result.state == "failed"
    assert said in str(result.error)


@pytest.mark.usefixtures("api")
def test_the_author_alone_may_send_it_elsewhere(attack: Callable[..., Any]) -> None:
    with listening_broker() as broker:
        form = {"conn_id": CONN_ID, "set": {"bootstrap.servers": broker.address}}
        attack(form, **FORM, dry_run=True, keep_secrets=True)

    assert ("old", SECRET) in broker.logins


@pytest.mark.usefixtures("api")
def test_leave_that_expand_brings_is_nobodys_word(dag: DAG, run_dag: RunDag, broker: Listener) -> None:
    from airflow.sdk import task

    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    with dag:

        @task
        def form() -> list[dict[str, Any]]:
            server = {"set": {"bootstrap.servers": broker.address}}
            return [{**server, "keep_secrets": True}, {**server, "secret_prefix": "fo"}]

        AlterConnectionRestartOperator.partial(task_id="alter", conn_id=CONN_ID, dry_run=True).expand_kwargs(
            form()
        )

    states = run_dag(dag)

    assert {state for (task_id, _), state in states.items() if task_id == "alter"} == {"failed"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"keep_secrets": "True"}, "keep_secrets: is not True or False, written in the DAG file"),
        ({"keep_secrets": "{{ params.keep }}"}, "keep_secrets: is not True or False"),
        ({"keep_secrets": 1}, "keep_secrets: is not True or False"),
        ({"keep_secrets": None}, "keep_secrets: is not True or False"),
        ({"secret_prefix": ""}, "secret_prefix: is not the beginning"),
        ({"secret_prefix": "{{ params.prefix }}"}, "secret_prefix: is not the beginning"),
        ({"allowed_files": "/etc/ca.pem"}, "allowed_files: is not a list of absolute paths"),
        ({"allowed_files": ["{{ params.file }}"]}, "allowed_files: is not a list of absolute paths"),
        ({"allowed_files": ["/{{ params.file }}"]}, "allowed_files: is not a list of absolute paths"),
    ],
)
def test_what_only_the_author_may_say_is_a_literal(dag: DAG, written: dict[str, Any], said: str) -> None:
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    with pytest.raises(ConfigurationError) as refused:
        AlterConnectionRestartOperator(task_id="alter", conn_id="k", drop="client.id", dag=dag, **written)

    assert said in str(refused.value)


def test_what_only_the_author_may_say_is_never_rendered() -> None:
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    rendered = set(AlterConnectionRestartOperator.template_fields)

    assert not rendered & {"keep_secrets", "secret_prefix", "allowed_files"}


def named(server: str) -> list[tuple[dict[str, Any], str]]:
    """Sinks that name a server where a connection or an option belongs, and what is wrong with each."""
    source = {"connection": CONN_ID, "topic": "orders"}
    option = {"options": {"kafka.bootstrap.servers": server}}
    sources: list[tuple[Any, str]] = [
        (f"{server}/orders", f"connection: '{server}' {NO_ID}"),
        ({"kafka": {**source, "connection": server}}, f"connection: '{server}' {NO_ID}"),
        (
            {"kafka": {**source, "connection": f"kafka://{server}"}},
            f"connection: 'kafka://{server}' {NO_ID}",
        ),
        ({"kafka": {**source, **option}}, "options.kafka.bootstrap.servers: cannot be set: the topic and"),
        ({"kafka": {**source, "bootstrap.servers": server}}, "bootstrap.servers: is not known (one of"),
    ]
    read = {
        "query": "SELECT value FROM source LEFT JOIN users ON name = value",
        "lookups": {"users": {"postgres": {"connection": server, "table": "public.users"}}},
        "source": {"kafka": {**source, "format": "text"}},
    }
    return [
        *(({**SINK, "source": written}, f"source.kafka.{said}") for written, said in sources),
        ({**SINK, **read}, f"lookups.users.postgres.connection: '{server}' {NO_ID}"),
    ]


@pytest.mark.parametrize("place", range(6))
@pytest.mark.usefixtures("api", "spark")
def test_validation_takes_a_server_from_nobody(
    broker: Listener, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.arguments import parse
    from airflow_provider_sinks.operators.validate.sink_report import sink_report

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")  # connections are read without a task
    sink, said = named(broker.address)[place]
    with pytest.raises(ConfigurationError) as refused:  # noqa: PT012  by the spec itself, or by the report
        report = sink_report(parse(sink), "spark_default", 5)
        raise report.error() or AssertionError(report.table())

    (problem,) = refused.value.problems
    assert str(problem).startswith(said)


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("api")
def test_no_command_takes_a_server_from_a_file_of_its_user(
    desk: Desk, tmp_path: Path, broker: Listener, verb: str, place: int
) -> None:
    demand_refused_in_file(desk, tmp_path, verb, named(broker.address)[place][0])


def test_a_command_says_the_secret_where_it_is_stored_for(
    desk: Desk, tmp_path: Path, api: AirflowApi
) -> None:
    sink = {**SINK, "source": f"{CONN_ID}/orders"}
    with listening_broker() as broker:
        options = {**OPTIONS, "bootstrap.servers": broker.address}
        ConnectionStore(api).change(ConnectionFields(CONN_ID, "kafka", extra=options), ["extra"])
        run_on_file(desk, tmp_path, "check", SINK["name"], [sink])

    assert ("old", SECRET) in broker.logins


@pytest.mark.usefixtures("api")
def test_no_command_takes_a_server_in_place_of_a_sink(desk: Desk, broker: Listener) -> None:
    answer = desk.run("status", f"kafka://{broker.address}")

    assert answer.code == 64, answer
    assert f"kafka://{broker.address}" in answer.err
