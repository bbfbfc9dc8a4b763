"""The operator that alters a connection, run by Airflow's task runner."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from tests.airflow.altering import CONN_ID, NEW, OPTIONS, SECRET, make
from tests.airflow.api_server import account
from tests.airflow_side import xcom_of

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator
    from tests.airflow_side import RunTask

Alter = Callable[..., "AlterConnectionRestartOperator"]
QUIET = {"conn_id": CONN_ID, "validate": False, "keep_secrets": True}


@pytest.fixture
def api(airflow_url: str, connections: Callable[..., None]) -> Iterator[AirflowApi]:
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        make(api)
        yield api


@pytest.fixture
def alter(dag: DAG) -> Alter:
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    def make_task(**arguments: Any) -> AlterConnectionRestartOperator:
        given = {"task_id": "alter", "retries": 2, "dag": dag, **arguments}
        return AlterConnectionRestartOperator(**given)

    return make_task


def shown(api: AirflowApi) -> dict[str, Any]:
    """Return the extra of the connection as the API shows it."""
    row = api.find(f"connections/{CONN_ID}")
    assert row is not None
    return dict(json.loads(row["extra"]))


def test_arguments_and_a_statement_do_the_same(api: AirflowApi, run_task: RunTask, alter: Alter) -> None:
    arguments = alter(**QUIET, set={"bootstrap.servers": NEW}, drop=["client.id"], reset="client.dns.lookup")
    statement = (
        f"ALTER CONNECTION {CONN_ID} SET (bootstrap.servers '{{{{ dag_run.conf.servers }}}}'), "
        "DROP (client.id), RESET (client.dns.lookup) WITH (VALIDATE = false)"
    )
    wanted = {name: value for name, value in OPTIONS.items() if name != "client.id"}
    wanted |= {"bootstrap.servers": NEW, "sasl.password": "***"}

    first = run_task(arguments)
    after_first = shown(api)
    make(api)
    second = run_task(alter(task_id="by_statement", statement=statement, keep_secrets=True), {"servers": NEW})

    assert first.state == second.state == "success", (first.error, second.error)
    assert after_first == shown(api) == wanted


@pytest.mark.usefixtures("api")
def test_a_second_try_of_a_dry_run_is_judged_as_the_first(run_task: RunTask, alter: Alter) -> None:
    """The retry of a change takes what it finds done for its own; a dry run has done nothing."""
    look = alter(**QUIET, drop=["socket.timeout.ms"], dry_run=True)

    first, second = run_task(look), run_task(look, again=True)

    assert first.state == second.state == "failed"
    assert str(first.error) == str(second.error)
    assert "socket.timeout.ms" in str(second.error)


def test_a_sink_that_is_not_running_is_named_and_not_waited_for(
    api: AirflowApi, run_task: RunTask, alter: Alter, dag: DAG, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    sink = {"name": "dependent", "source": f"{CONN_ID}/in", "target": f"{CONN_ID}/out"}
    SubmitSinkJobOperator(task_id="submit", sink=sink, dag=dag)
    templated = {**sink, "name": "templated", "target": f"{CONN_ID}/{{{{ ds }}}}"}
    SubmitSinkJobOperator(task_id="templated", sink=templated, dag=dag)
    SubmitSinkJobOperator(
        task_id="other", sink={**sink, "name": "other", "source": "k/in", "target": "k/x"}, dag=dag
    )

    planned = run_task(
        alter(
            task_id="plan",
            conn_id=CONN_ID,
            dry_run=True,
            keep_secrets=True,
            set={"bootstrap.servers": "127.0.0.1:1"},
        )
    )
    plan = capfd.readouterr().out
    result = run_task(alter(**QUIET, set={"bootstrap.servers": NEW}))

    log = capfd.readouterr().out
    assert planned.state == "up_for_retry"
    assert "not checked: sink templated is only known when its task runs" in plan
    assert result.state == "success", result.error
    assert "not waited for: sink dependent is queued; its next launch takes the options" in log
    assert "sink other" not in log
    assert shown(api)["bootstrap.servers"] == NEW
    assert SECRET not in log
    data = xcom_of(dag.dag_id)
    assert (data["end"], data["changed"], data["on_new"]) == ("altered", ["bootstrap.servers"], {})


def test_a_dry_run_of_a_form_changes_nothing(
    api: AirflowApi, run_task: RunTask, alter: Alter, capfd: pytest.CaptureFixture[str]
) -> None:
    form = "{{ dag_run.conf['set'] }}"

    result = run_task(
        alter(conn_id=CONN_ID, validate="False", dry_run="true", set=form), {"set": '{"client.id": "new"}'}
    )

    assert result.state == "success", result.error
    assert shown(api)["client.id"] == "sinks"
    assert "2 of 4  commit     compare again" in capfd.readouterr().out


def test_a_form_may_give_a_value_that_looks_like_a_template(
    api: AirflowApi, run_task: RunTask, alter: Alter
) -> None:
    form = "{{ dag_run.conf['set'] }}"

    result = run_task(alter(**QUIET, set=form), {"set": '{"client.id": "a{{b"}'})

    assert result.state == "success", result.error
    assert shown(api)["client.id"] == "a{{b"


def test_somebody_elses_alteration_is_told_with_the_state_of_its_task(
    api: AirflowApi, run_task: RunTask, alter: Alter, dag: DAG
) -> None:
    from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
    from airflow_provider_sinks.core.alter.backup import Holder, Mark
    from airflow_provider_sinks.core.connection.fields import ConnectionFields

    mark = Mark(Holder("ops", "manual", "alter_it"), "2026-11-21T20:00:00Z")
    backup = ConnectionFields(f"{CONN_ID}.before", "kafka", extra=OPTIONS)
    ConnectionStore(api).create(backup, mark.text(CONN_ID))

    result = run_task(alter(**QUIET, set={"client.id": "new"}))

    assert result.state == "failed"
    assert 'task alter_it of DAG ops, run "manual" is altering it since 2026-11-21T20:00:00Z' in str(
        result.error
    )
    assert "that task is gone" in str(result.error)
    assert xcom_of(dag.dag_id)["end"] == "locked"


def test_what_is_not_valid_is_all_told_and_nothing_is_left(
    api: AirflowApi, run_task: RunTask, alter: Alter
) -> None:
    result = run_task(alter(**QUIET, set={"bootstrap.server": "x", "sasl.password": "told"}, drop=["acks"]))

    assert result.state == "failed"
    assert 'bootstrap.server: is not known (did you mean "bootstrap.servers"?)' in str(result.error)
    assert "sasl.password: is a secret" in str(result.error)
    assert "acks: may not be altered" in str(result.error)
    assert "told" not in str(result.error)
    assert api.find(f"connections/{CONN_ID}.before") is None


@pytest.mark.usefixtures("api")
def test_a_connection_that_is_not_there_is_said(run_task: RunTask, alter: Alter) -> None:
    result = run_task(alter(conn_id="nobody", set={"client.id": "x"}))

    assert result.state == "failed"
    assert 'connection "nobody" does not exist' in str(result.error)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "conn_id: is missing"),
        ({"conn_id": "k"}, "set, drop, reset: nothing is to be changed"),
        ({"conn_id": "k", "set": ["a"]}, "set: must be a mapping"),
        ({"conn_id": "k", "drop": [1]}, "drop: holds 1, which is no name"),
        ({"conn_id": "k", "drop": "a", "watch_timeout": 0}, "watch_timeout: is 0"),
        ({"conn_id": "k", "drop": "a", "dry_run": "perhaps"}, "dry_run: is 'perhaps'"),
        ({"conn_id": "k.before", "drop": "a"}, "conn_id: ends with .before"),
        ({"conn_id": "k" * 195, "drop": "a"}, "conn_id: is longer than 193 characters"),
        ({"statement": "ALTER CONNECTION k DROP (a)", "conn_id": "k"}, "statement: is given beside conn_id"),
        ({"statement": "ALTER CONNECTION k"}, "expected SET, DROP or RESET"),
    ],
)
def test_wrong_arguments_are_told_when_the_dag_file_is_read(
    alter: Alter, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        alter(**arguments)

    assert said in str(refused.value)
