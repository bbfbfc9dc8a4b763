"""The attack of ``test_stolen_secrets.py`` on a database's password: a Postgres that asks for it in clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
from tests.airflow.fakes import SINK
from tests.listening_broker import Listener, listening_database

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask

DAGS = Path(__file__).parents[2] / "dags"
CONN_ID, SECRET = "pg_prod", "the stored password of a database"
OLD = ConnectionFields(CONN_ID, "postgres", "pg.old", 5432, "old", SECRET, "shop", {"sslmode": "require"})
WRITTEN: dict[str, dict[str, Any]] = {
    "set": {"conn_id": "{{ dag_run.conf['conn_id'] }}", "set": "{{ dag_run.conf['set'] | tojson }}"},
    "statement": {"statement": "{{ dag_run.conf['statement'] }}"},
}
_ANEW = "password: must be given anew: host and port and sslmode would change"
MOVES: dict[str, tuple[dict[str, Any], str]] = {
    "the password": ({}, _ANEW),
    "the password of another": ({"user": "me"}, "password: must be given anew"),
    "a Variable as the user": ({"user": {"secret": FOREIGN}}, "user: is no secret"),
    "a Variable as the database": ({"database": {"secret": FOREIGN}}, "database: is no secret"),
    "a foreign Variable": ({"password": {"secret": FOREIGN}}, "does not begin with sinks_secret_"),
    "no Variable": ({"password": {"secret": "absent"}}, "does not begin with sinks_secret_"),
    "leave for himself": ({"keep_secrets": True}, "keep_secrets: is not known"),
    "the address beside the host": ({"hostaddr": "127.0.0.1"}, "hostaddr: "),
    "a file of passwords": ({"passfile": "/etc/passwd"}, "passfile: "),
}


@pytest.fixture
def database() -> Iterator[Listener]:
    """The attacker's own server; it hears nothing, whatever a test does."""
    with unheard(listening_database()) as listening:
        yield listening


@pytest.fixture
def api(airflow_url: str, connections: Callable[..., None]) -> Iterator[AirflowApi]:
    """Airflow with a connection that holds a password, and a Variable that is nobody's business."""
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        for conn_id in (CONN_ID, f"{CONN_ID}.before"):
            ConnectionStore(api).delete(conn_id)
        ConnectionStore(api).create(OLD, "a database")
        with foreign_variable(api):
            yield api
        ConnectionStore(api).delete(CONN_ID)


@pytest.fixture
def attack(dag: DAG, run_task: RunTask) -> Callable[..., Any]:
    """Run an alteration as a form does: its author wrote a template, its user fills it in."""
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    def run(filled_in: dict[str, Any], written: str = "set", **more: Any) -> Any:
        task = AlterConnectionRestartOperator(task_id="alter", dag=dag, **WRITTEN[written], **more)
        return run_task(task, filled_in)

    return run


def moved(server: Listener, more: dict[str, Any]) -> dict[str, Any]:
    """What the form's user fills in."""
    away = {"host": server.host, "port": server.port, "sslmode": "disable"}
    return {"conn_id": CONN_ID, "set": {**away, **more}}


def demand_untouched(api: AirflowApi) -> None:
    row = api.find(f"connections/{CONN_ID}")
    assert row is not None
    assert (row["host"], row["port"], row["login"], row["schema"]) == ("pg.old", 5432, "old", "shop")
    assert api.find(f"connections/{CONN_ID}.before") is None


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
@pytest.mark.parametrize(("more", "said"), MOVES.values(), ids=MOVES)
def test_an_operator_sends_no_password_to_the_database_of_who_fills_it_in(
    attack: Callable[..., Any],
    api: AirflowApi,
    database: Listener,
    more: dict[str, Any],
    said: str,
    *,
    dry_run: bool,
) -> None:
    result = attack(moved(database, more), dry_run=dry_run)

    assert result.state == "failed"
    assert said in str(result.error)
    assert FOREIGN_VALUE not in str(result.error)
    assert SECRET not in str(result.error)
    demand_untouched(api)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("SET (host '{host}', port '{port}') WITH (DRY RUN)", "password: must be given anew"),
        ("SET (host '{host}', port '{port}', sslmode 'disable')", _ANEW),
        (
            "SET (host '{host}', port '{port}', password SECRET foreign)",
            "does not begin with sinks_secret_",
        ),
        ("SET (host '{host}', port '{port}', user SECRET foreign)", "user: is no secret"),
        ("SET (host '{host}', port '{port}') WITH (KEEP_SECRETS)", "WITH does not take KEEP SECRETS"),
    ],
)
def test_a_statement_sends_no_password_to_the_database_of_its_user(
    attack: Callable[..., Any], api: AirflowApi, database: Listener, changes: str, said: str
) -> None:
    address = changes.format(host=database.host, port=database.port)

    result = attack({"statement": f"ALTER CONNECTION {CONN_ID} {address}"}, "statement")

    assert result.state == "failed"
    assert said in str(result.error)
    demand_untouched(api)


@pytest.mark.parametrize("task_id", ["plan", "apply"])
def test_the_shipped_form_sends_no_password_to_the_database_of_its_user(
    run_task: RunTask, api: AirflowApi, database: Listener, task_id: str
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    form = DagBag(str(DAGS / "alter_connection.py")).dags["alter_connection"]
    filled = {name: param.value for name, param in form.params.items()}
    conf = {**filled, **moved(database, {}), "dry_run": task_id == "plan"}

    result = run_task(form.get_task(task_id), conf=conf)

    assert result.ti.state == "failed"
    assert _ANEW in str(result.error)
    demand_untouched(api)


@pytest.mark.usefixtures("api")
def test_the_author_alone_may_send_it_elsewhere(attack: Callable[..., Any]) -> None:
    with listening_database() as database:
        attack(moved(database, {}), dry_run=True, keep_secrets=True)

    assert ("old", SECRET) in database.logins


def named(server: str) -> list[tuple[dict[str, Any], str]]:
    """Sinks that name a server where a connection of a database, its table or an option belongs.

    Each with what is wrong with it.
    """
    table = {"connection": CONN_ID, "table": "public.users", "mode": "append"}
    lookup = {"connection": CONN_ID, "table": "public.users"}
    query = {"query": "SELECT value FROM source LEFT JOIN users ON name = value"}
    of_text = {**SINK, "source": {"kafka": {"connection": "kafka_test", "topic": "a", "format": "text"}}}
    url = f"postgresql://{server}/shop"
    targets: list[tuple[Any, str]] = [
        ({"postgres": {**table, "connection": server}}, f"postgres.connection: '{server}' {NO_ID}"),
        ({"postgres": {**table, "connection": url}}, f"postgres.connection: '{url}' {NO_ID}"),
        ({"postgres": {**table, "host": server}}, "postgres.host: is not known (one of"),
        ({"postgres": {**table, "options": {"host": server}}}, "postgres.options: is not known (one of"),
        (f"{server}/public.users", f"kafka.connection: '{server}' {NO_ID}"),
    ]
    lookups: list[tuple[Any, str]] = [
        ({"postgres": {**lookup, "connection": server}}, f"connection: '{server}' {NO_ID}"),
        ({"postgres": {**lookup, "host": server}}, "host: is not known (one of"),
        (f"{server}/public.users", f"connection: '{server}' {NO_ID}"),
    ]
    return [
        *(({**of_text, "target": target}, f"target.{said}") for target, said in targets),
        *(
            ({**of_text, **query, "lookups": {"users": users}}, f"lookups.users.postgres.{said}")
            for users, said in lookups
        ),
    ]


@pytest.mark.parametrize("place", range(8))
@pytest.mark.usefixtures("api", "spark")
def test_validation_takes_a_database_from_nobody(
    database: Listener, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.arguments import parse
    from airflow_provider_sinks.operators.validate.sink_report import sink_report

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")  # connections are read without a task
    sink, said = named(database.address)[place]
    with pytest.raises(ConfigurationError) as refused:  # noqa: PT012  by the spec itself, or by the report
        report = sink_report(parse(sink), "spark_default", 5)
        raise report.error() or AssertionError(report.table())

    (problem,) = refused.value.problems
    assert str(problem).startswith(said)


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("api")
def test_no_command_takes_a_database_from_a_file_of_its_user(
    desk: Desk, tmp_path: Path, database: Listener, verb: str, place: int
) -> None:
    demand_refused_in_file(desk, tmp_path, verb, named(database.address)[place][0])


def test_a_command_says_the_secret_where_it_is_stored_for(
    desk: Desk, tmp_path: Path, api: AirflowApi
) -> None:
    table = {"connection": CONN_ID, "table": "public.users", "mode": "append"}
    with listening_database() as database:
        there: dict[str, Any] = {
            "host": database.host,
            "port": database.port,
            "extra": {"sslmode": "disable"},
        }
        ConnectionStore(api).change(replace(OLD, **there), there)
        run_on_file(desk, tmp_path, "check", SINK["name"], [{**SINK, "target": {"postgres": table}}])

    assert ("old", SECRET) in database.logins


@pytest.mark.parametrize(
    "words",
    [
        ("status", "postgresql://{server}/shop"),
        ("status", "{sink}", "--api-conn-id", "{server}"),
        ("status", "{sink}", "--api-conn-id", "http://{server}"),
        ("status", "{sink}", "--yarn-conn-id", "{server}"),
        ("pause", "{sink}", "--yarn-conn-id", "spark://{server}", "--yes"),
        ("plan", "{sink}", "--api-conn-id", "{server}"),
        ("describe", "{sink}", "--api-conn-id", "{server}"),
        ("check", "{sink}", "--spark-conn-id", "{server}", "--ask-spark", "always"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("hasty")
def test_no_command_takes_a_server_in_place_of_a_connection(
    desk: Desk, database: Listener, words: tuple[str, ...]
) -> None:
    answer = desk.run(*(word.format(server=database.address, sink=desk.sink) for word in words))

    assert answer.code == 64, answer.err
