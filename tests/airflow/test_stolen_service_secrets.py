"""The attack of ``test_stolen_secrets.py`` on what is spoken to by HTTP: registries, catalogs, Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.arguments import parse
from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.hooks.airflow_account import airflow_api
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
from tests.airflow.fakes import SINK, FakeSpark
from tests.listening_broker import Listener, listening_service

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask

DAGS = Path(__file__).parents[2] / "dags"
FORM = {"conn_id": "{{ dag_run.conf['conn_id'] }}", "set": "{{ dag_run.conf['set'] | tojson }}"}
STATEMENT = {"statement": "{{ dag_run.conf['statement'] }}"}
ACCOUNT, SECRET = "airflow_api_default", "the stored password of a service"
GIVEN = "sinks_secret_of_the_attacker"


REST = {"catalog": "rest"}


@dataclass(frozen=True)
class Service:
    """A connection that holds a password, and how its user would lead it to his own server.

    :param moves: changes of his, by what they are; ``{server}`` is his address.
    """

    old: ConnectionFields
    moves: Mapping[str, dict[str, Any]]


SERVICES = {
    "registry": Service(
        ConnectionFields("registry_prod", "http", "http://r.old", 8081, "old", SECRET),
        {
            "its host": {"host": "http://{server}"},
            "its addresses": {"urls": "http://{server}"},
            "its addresses behind others": {"urls": "http://r.old:8081,http://{server}"},
        },
    ),
    "catalog": Service(
        ConnectionFields("lake_prod", "iceberg", "http://c.old", None, "old", SECRET, None, REST),
        {
            "its host": {"host": "http://{server}"},
            "who gives tokens": {"oauth2-server-uri": "http://{server}/token"},
            "where its storage is": {"s3.endpoint": "http://{server}"},
            "where its other storage is": {"adls.account-host": "{server}"},
            "where its tables are": {"warehouse": "abfss://c@{server}/t"},
        },
    ),
}  # fmt: skip
MOVES = [(of, how) for of, service in SERVICES.items() for how in service.moves]


@pytest.fixture
def server() -> Iterator[Listener]:
    """The attacker's own server; it hears nothing, whatever a test does."""
    with unheard(listening_service()) as listening:
        yield listening


@pytest.fixture
def api(airflow_url: str, connections: Callable[..., None]) -> Iterator[AirflowApi]:
    """Airflow with a Variable that is nobody's business, and one that is there for alterations."""
    connections(**{ACCOUNT: account(airflow_url)})
    with airflow_api() as api, foreign_variable(api):
        api.call("POST", "variables", {"key": GIVEN, "value": "any password"})
        yield api
        api.call("DELETE", f"variables/{GIVEN}")


@pytest.fixture
def attack(dag: DAG, run_task: RunTask) -> Callable[..., Any]:
    """Run an alteration as a form does: its author wrote a template, its user fills it in."""
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    def run(filled_in: dict[str, Any], **written: Any) -> Any:
        task = AlterConnectionRestartOperator(task_id="alter", retries=2, dag=dag, **{**FORM, **written})
        return run_task(task, filled_in)

    return run


@contextmanager
def stored(api: AirflowApi, fields: ConnectionFields) -> Iterator[None]:
    """Have a connection while the body runs; the body changes nothing of it."""
    for conn_id in (fields.conn_id, f"{fields.conn_id}.before"):
        ConnectionStore(api).delete(conn_id)
    ConnectionStore(api).create(fields, "of a service")
    try:
        yield
        row = api.find(f"connections/{fields.conn_id}")
        assert row is not None
        assert (row["host"], row["login"]) == (fields.host, fields.login)
        assert json.loads(row["extra"] or "{}") == dict(fields.stored_extra())
        assert api.find(f"connections/{fields.conn_id}.before") is None
    finally:
        ConnectionStore(api).delete(fields.conn_id)


def moved(of: str, how: str, server: Listener) -> dict[str, Any]:
    """What the form's user fills in."""
    service = SERVICES[of]
    changes = {name: value.format(server=server.address) for name, value in service.moves[how].items()}
    return {"conn_id": service.old.conn_id, "set": changes}


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
@pytest.mark.parametrize(("of", "how"), MOVES)
def test_a_form_sends_no_secret_of_a_service_to_its_users_server(
    attack: Callable[..., Any], api: AirflowApi, server: Listener, of: str, how: str, *, dry_run: bool
) -> None:
    with stored(api, SERVICES[of].old):
        result = attack(moved(of, how, server), dry_run=dry_run)

    assert result.state == "failed"
    assert "password: must be given anew" in str(result.error)
    assert SECRET not in str(result.error)


@pytest.mark.parametrize("of", SERVICES)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"login": {"secret": FOREIGN}}, "login: is no secret"),
        ({"host": {"secret": FOREIGN}}, "host: is no secret"),
        ({"password": {"secret": FOREIGN}}, "does not begin with sinks_secret_"),
        ({"token": {"secret": FOREIGN}}, "does not begin with sinks_secret_"),
        ({"password": "in clear"}, "password: is a secret"),
        ({"token": "in clear"}, "token: is a secret"),
    ],
)
def test_a_form_sends_no_foreign_variable_to_its_users_server(
    attack: Callable[..., Any], api: AirflowApi, server: Listener, *, of: str, more: dict[str, Any], said: str
) -> None:
    asked = moved(of, "its host", server)

    with stored(api, SERVICES[of].old):
        result = attack({**asked, "set": {**asked["set"], **more}}, dry_run=True)

    assert result.state == "failed"
    assert said in str(result.error)
    assert FOREIGN_VALUE not in str(result.error)


@pytest.mark.parametrize("of", SERVICES)
def test_a_statement_sends_no_secret_of_a_service_to_its_users_server(
    attack: Callable[..., Any], api: AirflowApi, server: Listener, of: str
) -> None:
    conn_id = SERVICES[of].old.conn_id
    statement = f"ALTER CONNECTION {conn_id} SET (host 'http://{server.address}') WITH (DRY RUN)"

    with stored(api, SERVICES[of].old):
        result = attack({"statement": statement}, conn_id=None, set=None, **STATEMENT)

    assert result.state == "failed"
    assert "password: must be given anew" in str(result.error)


@pytest.mark.parametrize("task_id", ["plan", "apply"])
@pytest.mark.parametrize("of", SERVICES)
def test_the_form_of_alterations_sends_no_secret_of_a_service_to_its_users_server(
    run_task: RunTask, api: AirflowApi, server: Listener, of: str, task_id: str
) -> None:
    from airflow_provider_sinks.forms import alter_connection_dag

    form = alter_connection_dag(f"alter_{of}")  # as it is shipped, but of any connection
    filled = {name: param.value for name, param in form.params.items()}
    conf = {**filled, **moved(of, "its host", server), "dry_run": task_id == "plan"}

    with stored(api, SERVICES[of].old):
        result = run_task(form.get_task(task_id), conf=conf)

    assert result.ti.state == "failed"
    assert "password: must be given anew" in str(result.error)
    assert SECRET not in str(result.error)


@pytest.mark.parametrize("of", SERVICES)
def test_the_author_alone_may_send_it_elsewhere(
    attack: Callable[..., Any], api: AirflowApi, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    from airflow_provider_sinks.operators.alter import alteration

    monkeypatch.setattr(alteration, "demand_named", lambda *_: None)  # as if a sink named it
    with listening_service() as server, stored(api, SERVICES[of].old):
        attack(moved(of, "its host", server), dry_run=True, keep_secrets=True)

        assert server.visits
    assert ("old", SECRET) in server.logins or of == "catalog"  # of which only the way is looked at


ANEW = {"password": {"secret": GIVEN}, "login": "me"}


@pytest.mark.parametrize(
    ("conn_id", "written"),
    [
        (ACCOUNT, {}),
        (ACCOUNT.upper(), {}),
        (f" {ACCOUNT} ", {}),
        ("airflow_api_of_mine", {"airflow_api_conn_id": "airflow_api_of_mine"}),
        (ACCOUNT, {"airflow_api_conn_id": "airflow_api_of_mine"}),
    ],
)
@pytest.mark.parametrize("asked_by", ["set", "statement"])
def test_our_own_account_at_airflow_is_never_led_elsewhere(
    attack: Callable[..., Any],
    api: AirflowApi,
    airflow_url: str,
    connections: Callable[..., None],
    server: Listener,
    *,
    conn_id: str,
    written: dict[str, Any],
    asked_by: str,
) -> None:
    connections(airflow_api_of_mine=account(airflow_url))
    away = {"host": f"http://{server.address}", **ANEW}
    statement = (
        f"ALTER CONNECTION \"{conn_id}\" SET (host 'http://{server.address}', login me, "
        f"password SECRET {GIVEN}) WITH (VALIDATE = false)"
    )

    if asked_by == "set":
        result = attack({"conn_id": conn_id, "set": away}, validate=False, **written)
    else:
        result = attack({"statement": statement}, conn_id=None, set=None, **STATEMENT, **written)

    assert result.state == "failed"
    assert "leads to Airflow's own API" in str(result.error), str(result.error)
    assert api.find(f"connections/{ACCOUNT}.before") is None


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
def test_a_connection_of_type_http_that_no_sink_names_is_not_altered(
    attack: Callable[..., Any], api: AirflowApi, server: Listener, *, dry_run: bool
) -> None:
    old = ConnectionFields("webhook", "http", "http://hook.old", None, "old", SECRET)
    away = {"conn_id": old.conn_id, "set": {"host": f"http://{server.address}", **ANEW}}

    with stored(api, old):
        result = attack(away, dry_run=dry_run)

    assert result.state == "failed"
    assert "no sink names it" in str(result.error)


@pytest.mark.parametrize("written", ["conn_id", "statement"])
def test_who_writes_our_own_account_into_a_dag_file_is_told_there(dag: DAG, written: str) -> None:
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    asked: dict[str, Any] = {"conn_id": ACCOUNT, "drop": "login"}
    if written == "statement":
        asked = {"statement": f"ALTER CONNECTION {ACCOUNT} DROP (login)"}

    with pytest.raises(ConfigurationError, match="leads to Airflow's own API"):
        AlterConnectionRestartOperator(task_id="alter", dag=dag, **asked)


def named(server: str) -> list[tuple[dict[str, Any], str]]:
    """Sinks that name a server where a connection of a service or an option belongs, and what is wrong."""
    http, with_login = f"http://{server}", f"http://old:password@{server}"
    source = {"connection": "kafka_test", "topic": "a", "schema": "id long"}
    avro = {"connection": "kafka_test", "topic": "b", "format": "avro"}
    lake, path = {"catalog": "lake_prod", "table": "a.b"}, {"path": "s3://bucket/a", "connection": "s3_prod"}
    targets: list[tuple[Any, str]] = [
        found
        for place, shown in ((server, server), (http, http), (with_login, server))
        for found in (
            ({"kafka": {**avro, "registry": place}}, f"kafka.registry: '{shown}' {NO_ID}"),
            ({"iceberg": {**lake, "catalog": place}}, f"iceberg.catalog: '{shown}' {NO_ID}"),
            ({"iceberg": f"{place}/a.b"}, f"iceberg.catalog: '{shown}' {NO_ID}"),
            ({"delta": {**path, "connection": place}}, f"delta.connection: '{shown}' {NO_ID}"),
        )
    ] + [
        ({"kafka": {**avro, "registry": "registry_prod", "urls": http}}, "kafka.urls: is not known (one of"),
        (
            {"iceberg": {**lake, "create": True, "properties": {"uri": server}}},
            "iceberg.properties.uri: 'uri' is no property that a sink sets",
        ),
        ({"iceberg": {**lake, "s3.endpoint": http}}, "iceberg.s3.endpoint: is not known (one of"),
        (
            {"delta": {**path, "path": f"s3://{server}/a", "s3.endpoint": http}},
            "delta.s3.endpoint: is not known (one of",
        ),
    ]
    read = {"source": {"kafka": {**source, "format": "avro", "registry": http}}}
    of_any = {**SINK, "source": {"kafka": source}}
    return [
        *(({**of_any, "target": target}, f"target.{said}") for target, said in targets),
        ({**SINK, **read}, f"source.kafka.registry: '{http}' {NO_ID}"),
    ]


@pytest.fixture
def services(api: AirflowApi, connections: Callable[..., None]) -> Iterator[None]:
    """Stored passwords of all services that the sinks name beside the server."""
    connections(s3_prod={"conn_type": "aws", "login": "old", "password": SECRET})
    with stored(api, SERVICES["registry"].old), stored(api, SERVICES["catalog"].old):
        yield


@pytest.mark.parametrize("place", range(17))
def test_a_sink_takes_a_service_from_nobody(server: Listener, place: int) -> None:
    sink, said = named(server.address)[place]

    with pytest.raises(ConfigurationError) as refused:
        parse(sink)

    assert str(refused.value.problems[0]).startswith(said)
    assert "old:password" not in str(refused.value)


@pytest.mark.usefixtures("services", "spark")
def test_validation_takes_a_service_from_nobody(
    dag: DAG, run_task: RunTask, server: Listener, spark: FakeSpark
) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    written = "{{ dag_run.conf['sink'] | tojson }}"
    task = ValidateConnectionOperator(task_id="validate", dag=dag, sink=written)
    for sink, said in named(server.address)[4:8]:  # each runs a whole task; the spec refuses the others alike
        result = run_task(task, {"sink": sink})

        assert result.state == "failed"
        assert said in str(result.error)
        assert not (spark.folder / "seen.json").exists()


@pytest.mark.parametrize("place", range(17))
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("services")
def test_no_command_takes_a_service_from_a_file_of_its_user(
    desk: Desk, tmp_path: Path, server: Listener, verb: str, place: int
) -> None:
    demand_refused_in_file(desk, tmp_path, verb, named(server.address)[place][0])


def test_a_command_says_the_secret_where_it_is_stored_for(
    desk: Desk, tmp_path: Path, connections: Callable[..., None]
) -> None:
    source = {"kafka": {"connection": "kafka_test", "topic": "a", "schema": "id long"}}
    avro = {"connection": "kafka_test", "topic": "b", "format": "avro", "registry": "registry_prod"}
    sink = {**SINK, "source": source, "target": {"kafka": avro}}
    with listening_service() as service:
        there = {"host": f"http://{service.host}", "port": service.port}
        connections(registry_prod={"conn_type": "http", "login": "old", "password": SECRET, **there})
        run_on_file(desk, tmp_path, "check", SINK["name"], [sink])

    assert ("old", SECRET) in service.logins
