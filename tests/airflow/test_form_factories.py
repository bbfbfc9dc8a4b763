"""The forms as who writes a DAG file makes them: what can be said, and what is refused."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from jinja2 import Template

from airflow_provider_sinks import Sink
from airflow_provider_sinks.core.errors import ConfigurationError
from tests.installed_connector import register

if TYPE_CHECKING:
    from airflow.sdk import DAG

FACTORIES = [
    "alter_connection_dag",
    "pause_or_resume_dag",
    "replay_dead_letters_dag",
    "reset_dag",
    "rewind_dag",
    "run_sink_once_dag",
]
APPROVED = ["alter_connection_dag", "replay_dead_letters_dag", "reset_dag", "rewind_dag"]
ABOUT_SINKS = ["pause_or_resume_dag", "replay_dead_letters_dag", "reset_dag", "rewind_dag"]
ABOUT_CONNECTIONS = {"alter_connection_dag": "conn_id", "run_sink_once_dag": "connection"}
ON_TABLES = ["target_connection"]
ACTING = {
    "alter_connection_dag": {"plan", "apply"},
    "pause_or_resume_dag": {"pause", "resume", "restart"},
    "replay_dead_letters_dag": {"plan", "begin", "submit"},
    "reset_dag": {"plan", "reset"},
    "rewind_dag": {"plan", "rewind"},
    "run_sink_once_dag": {"submit"},
}
"""The tasks that look at services or change something."""


def make(factory: str, **arguments: Any) -> Any:
    """Return the DAG of a form."""
    from airflow_provider_sinks import forms

    function: Callable[..., DAG] = getattr(forms, factory)
    return function(**arguments)


def asking(form: Any) -> set[str]:
    """Return the tasks of a form that ask who triggered the run."""
    return {task.task_id for task in form.tasks if task._pre_execute_hook is not None}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Let a form be made without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_form_takes_what_a_dag_takes(factory: str) -> None:
    given = {"tags": ["web"], "owner": "web", "access_control": {"Web": {"DAGs": {"can_read"}}}}

    made = make(factory, dag_id="mine", **given)

    assert (made.dag_id, set(made.tags), made.access_control) == ("mine", {"web"}, given["access_control"])
    assert {task.owner for task in made.tasks} == {"web"}


@pytest.mark.parametrize("factory", FACTORIES)
def test_by_default_op_may_trigger_and_others_may_look(factory: str) -> None:
    granted = make(factory).access_control or {}

    assert {role for role, grant in granted.items() if "can_edit" in grant["DAGs"]} == {"Op"}
    assert {role for role, grant in granted.items() if "DAG Runs" in grant} == {"Op"}


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_same_arguments_give_the_same_bytes(factory: str) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    first, second = (json.dumps(DagSerialization.to_dict(make(factory, users=["ann"]))) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_file_that_names_a_form_is_one_that_airflow_reads(factory: str) -> None:
    assert "dag" in factory  # Airflow passes over files in which neither "dag" nor "airflow" occurs


@pytest.mark.parametrize("factory", FACTORIES)
def test_each_task_that_looks_or_acts_asks_who_triggered(factory: str) -> None:
    assert asking(make(factory, users=["ann"])) == ACTING[factory]


@pytest.mark.parametrize("factory", FACTORIES)
def test_without_users_nobody_is_asked(factory: str) -> None:
    assert asking(make(factory)) == set()


@pytest.mark.parametrize(
    ("user", "users", "said"),
    [
        ("ann", ["ann", "bob"], None),
        ("eve", ["ann", "bob"], 'user "eve" may not use this form'),
        ("eve", [], 'user "eve" may not use this form'),
        (None, ["ann"], "nobody triggered this form"),
    ],
)
def test_a_run_of_another_user_does_nothing(user: str | None, users: list[str], said: str | None) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    hook = make("reset_dag", users=users).get_task("plan")._pre_execute_hook
    context: Any = {"dag_run": SimpleNamespace(triggering_user_name=user)}

    if said is None:
        hook(context)
    else:
        with pytest.raises(AirflowFailException, match=said):
            hook(context)


@pytest.mark.parametrize("factory", APPROVED)
def test_only_who_is_named_may_approve(factory: str) -> None:
    asked = make(factory, approvers={"7": "Ann"}).get_task("approve")
    anyone = make(factory).get_task("approve")

    assert (asked.assigned_users, anyone.assigned_users) == ([{"id": "7", "name": "Ann"}], None)


@pytest.mark.parametrize("factory", APPROVED)
def test_an_answer_that_airflow_loses_is_asked_for_again_whatever_the_default(factory: str) -> None:
    asked = make(factory, default_args={"retries": 0, "retry_delay": timedelta(hours=1)}).get_task("approve")

    assert asked.retries >= 1
    assert asked.retry_delay < timedelta(minutes=1)


@pytest.mark.parametrize("factory", APPROVED)
def test_a_plan_that_an_answer_is_lost_to_looks_again_whatever_the_default(factory: str) -> None:
    form = make(factory, default_args={"retries": 0, "retry_delay": timedelta(hours=1)})
    plan = form.get_task("plan")

    assert plan.dry_run is True
    assert plan.retries >= 1
    assert plan.retry_delay < timedelta(minutes=1)


@pytest.mark.parametrize("factory", APPROVED)
def test_what_a_person_wrote_is_no_markdown_to_who_approves_it(factory: str) -> None:
    hostile = "x\n```\n![](http://evil) **approve**"
    asked = make(factory).get_task("approve")
    told = SimpleNamespace(xcom_pull=lambda _: {"what": hostile})

    body = asked.render_template(asked.body, {"params": {"drop": hostile, "reset": hostile}, "ti": told})

    before, code, behind = re.split("^```.*$", body, flags=re.MULTILINE)
    assert "evil" in code
    assert "evil" not in before + behind


@pytest.mark.parametrize("factory", ABOUT_SINKS)
def test_a_form_suggests_sinks_and_takes_others(factory: str) -> None:
    sink = Sink(name="orders", source="k/a", target="k/b")

    field = make(factory, sinks=["clicks", sink, {"name": "views"}, "clicks"]).params.get_param("sink")

    assert field.schema["examples"] == ["clicks", "orders", "views"]
    assert field.resolve("another") == "another"


@pytest.mark.parametrize(("factory", "field"), ABOUT_CONNECTIONS.items())
def test_only_the_named_connections_may_be_chosen(factory: str, field: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    choice = make(factory, connections=["a", "b"]).params.get_param(field)

    assert choice.resolve("b") == "b"
    with pytest.raises(ParamValidationError):
        choice.resolve("c")


def test_our_own_account_at_airflow_is_not_taken_at_the_form() -> None:
    from airflow.sdk.exceptions import ParamValidationError

    choice = make("alter_connection_dag", airflow_api_conn_id="mine").params.get_param("conn_id")

    assert choice.resolve("kafka_prod") == "kafka_prod"
    for conn_id in ("mine", "airflow_api_default"):
        with pytest.raises(ParamValidationError):
            choice.resolve(conn_id)


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        ({"secret": "sinks_secret_kafka"}, True),
        ({"secret": "other_secret"}, False),
        ({"secret": "sinks_secret_"}, False),
        ("in clear", False),
    ],
)
def test_a_secret_is_named_by_a_variable_that_is_there_for_it(value: object, *, is_taken: bool) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    field = make("alter_connection_dag").params.get_param("set")

    if is_taken:
        assert field.resolve({"sasl.password": value})
    else:
        with pytest.raises(ParamValidationError):
            field.resolve({"sasl.password": value})


@pytest.mark.parametrize(
    "option",
    [
        "token", "password", "ssl.key.pem", "ssl.keystore.password", "s3.secret-access-key",
        "s3.session-token", "adls.account-key", "adls.sas-token", "gcs.oauth2.token", "credential",
        "header.Authorization", "basic.auth.user.info", "sslpassword", "sasl.jaas.config",
    ],
)  # fmt: skip
def test_no_secret_of_any_type_stands_in_the_conf_of_a_run(option: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    field = make("alter_connection_dag", servers=SERVERS).params.get_param("set")

    assert field.resolve({option: {"secret": "sinks_secret_one"}})
    with pytest.raises(ParamValidationError):
        field.resolve({option: "in clear"})


def test_every_option_that_is_no_secret_is_written_as_it_is() -> None:
    from airflow_provider_sinks.core.connection.types import all_secret_names, known_types

    field = make("alter_connection_dag").params.get_param("set")
    known = {name for one in known_types().values() for name in one.alterable.names}

    for option in sorted(known - all_secret_names()):
        assert field.resolve({option: "a value"}), option


SERVERS = ["new:9093", "other:9093", "pg.example"]


@pytest.mark.parametrize(
    ("option", "value", "is_taken"),
    [
        ("bootstrap.servers", "new:9093", True),
        ("bootstrap.servers", "other:9093, new:9093", True),
        ("bootstrap.servers", "evil:9093", False),
        ("bootstrap.servers", "new:9093,evil:9093", False),
        ("bootstrap.servers", "newx9093", False),
        ("metadata.broker.list", "evil:9093", False),
        ("urls", "new:9093,evil:9093", False),
        ("urls", "new:9093,other:9093", True),
        ("oauth2-server-uri", "http://evil/token", False),
        ("s3.endpoint", "http://evil", False),
        ("adls.account-name", "evil", False),
        ("adls.account-host", "evil", False),
        ("gcs.service.host", "http://evil", False),
        ("warehouse", "hdfs://evil/folder", False),
        ("host", "pg.example", True),
        ("host", "pgxexample", False),
        ("client.id", "anything", True),
    ],
)
def test_new_options_lead_to_named_servers_only(option: str, value: object, *, is_taken: bool) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    named = make("alter_connection_dag", servers=SERVERS).params.get_param("set")
    anywhere = make("alter_connection_dag").params.get_param("set")

    assert anywhere.resolve({option: value})
    with pytest.raises(ParamValidationError):
        anywhere.resolve({option: {"secret": "sinks_secret_a"}})
    if is_taken:
        assert named.resolve({option: value})
    else:
        with pytest.raises(ParamValidationError):
            named.resolve({option: value})


@pytest.mark.parametrize(
    ("factory", "arguments", "said"),
    [
        ("alter_connection_dag", {"servers": "new:9093"}, "servers: is 'new:9093'"),
        ("alter_connection_dag", {"servers": []}, "servers: is []"),
        ("alter_connection_dag", {"servers": [9093]}, "servers: is [9093]"),
        ("alter_connection_dag", {"secret_prefix": 17}, "secret_prefix: is not the beginning"),
        ("alter_connection_dag", {"allowed_files": ["ca.pem"]}, "allowed_files: is not a list of absolute"),
        ("alter_connection_dag", {"keep_secrets": True}, "keep_secrets: is not known"),
        ("rewind_dag", {"sinks": 17}, "sinks: is 17"),
        ("run_sink_once_dag", {"connections": 17}, "connections: is 17"),
        ("run_sink_once_dag", {"values": ["a"]}, "values: is ['a']"),
        ("run_sink_once_dag", {"target": "postgers"}, "postgers: is no kind of target that is installed"),
        ("run_sink_once_dag", {"target_connections": ["pg"]}, "'kafka' has no connection of its own"),
        ("run_sink_once_dag", {"target": "delta", "paths": "/data"}, "paths: is '/data'"),
        ("run_sink_once_dag", {"target": "delta", "paths": ["data"]}, "paths: holds 'data'"),
        ("run_sink_once_dag", {"target": "delta", "paths": ["/data/../etc"]}, "paths: holds '/data/../etc'"),
        ("run_sink_once_dag", {"target": "postgres", "paths": ["/data"]}, "'postgres' has no path"),
        ("run_sink_once_dag", {"target": "postgres", "target_connections": []}, "target_connections: is []"),
        ("run_sink_once_dag", {"values": {"mode": "upsert"}}, "values.mode: is no field of this form"),
        ("alter_connection_dag", {"conections": ["a"]}, '(did you mean "connections"?)'),
        ("alter_connection_dag", {"connections": "kafka_prod"}, "connections: is 'kafka_prod'"),
        (
            "alter_connection_dag",
            {"connections": ["kafka_prod", "airflow_api_default"]},
            "connections: 'airflow_api_default' leads to Airflow's own API",
        ),
        (
            "alter_connection_dag",
            {"connections": ["mine"], "airflow_api_conn_id": "mine"},
            "connections: 'mine' leads to Airflow's own API",
        ),
        ("alter_connection_dag", {"connections": []}, "connections: is []"),
        ("alter_connection_dag", {"connections": ["a b"]}, "connections: holds 'a b'"),
        ("alter_connection_dag", {"users": "ann"}, "users: is 'ann'"),
        ("alter_connection_dag", {"users": [1]}, "users: is [1]"),
        ("alter_connection_dag", {"approvers": ["ann"]}, "approvers: is ['ann']"),
        ("pause_or_resume_dag", {"schedule": "@daily"}, "schedule: is set here"),
        ("pause_or_resume_dag", {"params": {}}, "params: is set here"),
        ("pause_or_resume_dag", {"owner_link": "https://a"}, "owner_link: whose link is it?"),
        ("rewind_dag", {"sinks": "orders"}, "sinks: is 'orders'"),
        ("rewind_dag", {"sinks": ["two words"]}, "sinks: holds 'two words'"),
        ("reset_dag", {"sinks": [17]}, "sinks: holds 17"),
        ("run_sink_once_dag", {"values": {"sorce": "a"}}, "values.sorce: is no field of this form"),
        ("run_sink_once_dag", {"spark": {"sink": {}}}, "spark.sink: is set here"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_an_error_when_the_file_is_read(
    factory: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make(factory, **arguments)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("target", "own"),
    [
        (
            "kafka",
            [
                "target",
                "key",
                "envelope",
                "compact_epoch",
                "schemas_enable",
                "key_in_value",
                "headers",
                "timestamp",
                "partition_by",
            ],
        ),
        ("postgres", [*ON_TABLES, "target", "mode", "key"]),
        ("iceberg", [*ON_TABLES, "target", "mode", "key"]),
        ("delta", ["target", "storage", "mode", "key"]),
    ],
)
def test_each_field_of_a_sink_that_runs_once_can_be_filled_in_beforehand(target: str, own: list[str]) -> None:
    names = ["sink", "connection", "source", "schema", "where", *own, "accept"]
    values = {name: f"a_{name}" for name in names} | {
        name: value
        for name, value in (
            ("mode", "upsert"), ("envelope", "upsert"), ("compact_epoch", True), ("schemas_enable", True),
            ("key_in_value", False),
        )
        if name in names
    }  # fmt: skip

    made = make("run_sink_once_dag", target=target, values=values)

    assert list(made.params) == names
    assert {name: param.value for name, param in made.params.items()} == values


def taken(*, is_taken: bool) -> AbstractContextManager[Any]:
    """Return what sees whether a form takes a value."""
    from airflow.sdk.exceptions import ParamValidationError

    return nullcontext() if is_taken else pytest.raises(ParamValidationError)


@pytest.mark.parametrize(
    ("storage", "is_taken"), [("lake", True), ("other", False), (None, False), ("", False)]
)
def test_a_form_into_a_folder_takes_the_connections_that_it_offers(
    storage: str | None, *, is_taken: bool
) -> None:
    field = make("run_sink_once_dag", target="delta", target_connections=["lake"]).params.get_param("storage")

    with taken(is_taken=is_taken):
        assert field.resolve(storage) == storage


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [
        ("/data/lake", True),
        ("/data/lake/clicks", True),
        ("s3://lake/a/b", True),
        ("/data/lakes", False),
        ("/data", False),
        ("s3://lake/b/../a", False),
        ("/data/lake/../../etc", False),
        ("/data/lake/a\nb", False),
        ("s3://lakeXa/a", False),
        ("file:///data/lake", False),
    ],
)
def test_a_form_into_a_folder_takes_the_folders_that_it_offers(path: str, *, is_taken: bool) -> None:
    paths = ["/data/lake/", "s3://lake/a"]
    field = make("run_sink_once_dag", target="delta", paths=paths).params.get_param("target")

    with taken(is_taken=is_taken):
        assert field.resolve(path) == path


def test_a_target_without_a_form_is_told(tmp_path: Path) -> None:
    with (
        register(tmp_path, "shelf = tests.brought_shelf:KIND").found(),
        pytest.raises(ConfigurationError, match="target: is 'shelf' \\(write its sink in a DAG file"),
    ):
        make("run_sink_once_dag", target="shelf")


def test_all_wrong_arguments_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        make("rewind_dag", users="ann", sinks="orders", tgs=[], schedule=None)

    assert {problem.where for problem in refused.value.problems} == {"users", "sinks", "tgs", "schedule"}


CARRIED_OUT = {
    "alter_connection_dag": ("apply", {"dry_run": False}, {"dry_run": True}),
    "replay_dead_letters_dag": ("begin", {"dry_run": False}, {"dry_run": True}),
    "reset_dag": ("reset", {"dry_run": False}, {"dry_run": True}),
    "rewind_dag": ("rewind", {"dry_run": False}, {"dry_run": True}),
    "pause_or_resume_dag": ("restart", {"action": "restart"}, {"action": "pause"}),
}
"""A task that acts, with what must have been asked for, and with what it must do nothing."""


@pytest.mark.parametrize("factory", CARRIED_OUT)
def test_a_task_that_acts_carries_out_nothing_else_than_was_asked_for(factory: str) -> None:
    from airflow_provider_sinks.operators.arguments import flag_of_form

    task_id, asked, not_asked = CARRIED_OUT[factory]
    dry_run = Template(str(make(factory).get_task(task_id).dry_run))

    assert not flag_of_form(dry_run.render(params=asked))
    assert flag_of_form(dry_run.render(params=not_asked))
