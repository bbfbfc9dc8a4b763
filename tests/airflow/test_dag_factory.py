"""The DAGs that the factory makes: their schedule, their retries, and what can be changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.fakes import SINK

if TYPE_CHECKING:
    from airflow.sdk import DAG


def serialised(dag: DAG) -> str:
    from airflow.serialization.serialized_objects import DagSerialization

    return json.dumps(DagSerialization.to_dict(dag), sort_keys=True)


def test_an_endless_sink_runs_until_a_person_is_needed() -> None:
    from airflow_provider_sinks import sink_dag

    dag = sink_dag(SINK, every=timedelta(seconds=1))

    assert dag.task_ids == ["validate", "submit"]
    assert type(dag.timetable).__name__ == "ContinuousTimetable"
    assert dag.start_date is not None
    assert (dag.max_active_runs, dag.max_consecutive_failed_dag_runs, dag.catchup) == (1, 1, False)
    submit: Any = dag.get_task("submit")
    assert submit.sink["trigger"] == {"every": "1s"}
    assert submit.retries == 10_000
    assert submit.max_retry_delay == timedelta(minutes=5)


def test_a_sink_that_takes_what_is_there_runs_on_the_users_schedule() -> None:
    from airflow_provider_sinks import sink_dag

    dag = sink_dag(SINK, schedule="@hourly")

    assert sorted(dag.task_ids) == ["check_topics", "submit", "validate"]
    assert dag.get_task("submit").upstream_task_ids == {"check_topics"}
    assert dag.get_task("submit").retries == 3
    assert dag.max_consecutive_failed_dag_runs == 0


def test_ordinary_airflow_arguments_win() -> None:
    from airflow_provider_sinks import sink_dag

    dag = sink_dag(
        SINK,
        every=timedelta(seconds=1),
        dag_id="mine",
        schedule=None,
        tags=["team-a"],
        default_args={"retries": 1, "owner": "me"},
        params={"extra": 1},
        spark={"packages": "a:b:1", "retries": 7},
    )

    submit: Any = dag.get_task("submit")
    assert dag.dag_id == "mine"
    assert type(dag.timetable).__name__ == "NullTimetable"
    assert dag.tags == {"team-a"}
    assert set(dag.params) == {"accept", "extra"}
    assert (submit.packages, submit.retries, submit.owner) == ("a:b:1", 7, "me")
    assert dag.get_task("validate").retries == 1


def test_the_form_asks_for_an_accept_code_and_hands_it_on() -> None:
    from airflow_provider_sinks import sink_dag

    dag = sink_dag(SINK)
    submit: Any = dag.get_task("submit")

    rendered = [
        submit.render_template(submit.accept, {"params": params})
        for params in ({"accept": None}, {"accept": "adopt-12"}, {})
    ]
    assert dag.params.get_param("accept").schema["type"] == ["null", "string"]
    assert rendered == ["", "adopt-12", ""]


def test_a_person_finds_the_sink_by_its_owner_and_its_tags() -> None:
    from airflow_provider_sinks import sink_dag

    dag = sink_dag(SINK, owner="team-a", owner_link="https://chat.example/team-a")

    assert dag.get_task("submit").owner == "team-a"
    assert dag.owner_links == {"team-a": "https://chat.example/team-a"}
    assert dag.tags == {"sinks", "connection:kafka_test"}
    assert "| rows written | missing | **refuses**" in (dag.doc_md or "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"shedule": "@daily"}, 'shedule: is not known (did you mean "schedule"?)'),
        ({"schedule": "@hurly"}, "schedule: '@hurly' is no preset of Airflow (did you mean \"@hourly\"?)"),
        ({"default_args": {"retries": -3}}, "default_args.retries: is -3 (a whole number from 0"),
        ({"spark": {"conf": {"spark.speculation": "true"}}}, "conf: spark.speculation: is set to 'true'"),
        ({"evry": "1s"}, 'evry: is not known (did you mean "every"?)'),
        ({"every": 5}, "every: 5 is not a duration (a number with ms, s, m, h or d, such as 60s)"),
        ({"every": "2d"}, "trigger.every: 2d is more than 1d (leave trigger out"),
        ({"spark": {"pakages": "a"}}, 'spark.pakages: is not known (did you mean "packages"?)'),
        ({"spark": {"application": "a.py"}}, "spark.application: it runs the sink's own application"),
        ({"spark": {"accept": "x"}}, "spark.accept: is set here"),
        ({"spark": "local"}, "spark: must be a mapping"),
        ({"owner_link": "https://a.b"}, "owner_link: whose link is it? (give an owner too)"),
        ({"check_topics": "no"}, "check_topics: is 'no' (True or False)"),
        ({"params": 1, "default_args": []}, "params: must be a mapping"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_with_the_nearest_right_one(arguments: dict[str, Any], said: str) -> None:
    from airflow_provider_sinks import sink_dag
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as error:
        sink_dag(SINK, **arguments)

    assert said in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"group": "a"}, 'group: is not known (did you mean "group_id"?)'),
        ({"spark": {"conn_id": "a"}}, "spark.conn_id: a sink has several connections"),
    ],
)
def test_a_wrong_argument_of_a_group_is_named(dag: DAG, arguments: dict[str, Any], said: str) -> None:
    from airflow_provider_sinks import SinkTaskGroup
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as error:
        SinkTaskGroup(SINK, dag=dag, **arguments)

    assert said in str(error.value)


def test_a_group_stands_in_a_dag_of_ones_own(dag: DAG) -> None:
    from airflow_provider_sinks import SinkTaskGroup

    first = SinkTaskGroup({**SINK, "name": "first"}, dag=dag)
    second = SinkTaskGroup({**SINK, "name": "second"}, check_topics=False, group_id="last", dag=dag)
    first >> second

    assert sorted(dag.task_ids) == [
        "first.check_topics", "first.submit", "first.validate", "last.submit", "last.validate",
    ]  # fmt: skip
    assert dag.get_task("first.submit").downstream_task_ids == {"last.validate"}


def test_a_literal_sink_is_checked_when_the_file_is_read() -> None:
    from airflow_provider_sinks import sink_dag
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match='did you mean "target"'):
        sink_dag({"name": "x", "source": "a/b", "tagret": "a/c"})


def test_the_same_sink_gives_the_same_bytes() -> None:
    from airflow_provider_sinks import sink_dag

    assert serialised(sink_dag(SINK, every=timedelta(seconds=1))) == serialised(
        sink_dag(SINK, every=timedelta(seconds=1))
    )


@pytest.mark.parametrize(
    ("declare", "every"),
    [(dict, None), (dict, "1s"), (SinkSpec.parse, None), (SinkSpec.parse, "1s")],
    ids=["mapping", "mapping, every", "Sink", "Sink, every"],
)
def test_a_sink_is_parsed_once_however_many_tasks_run_it(
    monkeypatch: pytest.MonkeyPatch, declare: Callable[[Any], Any], every: str | None
) -> None:
    from airflow_provider_sinks import sink_dag

    parsed: list[str] = []
    parse = SinkSpec.parse

    def counted(data: Mapping[str, Any], **how: Any) -> SinkSpec:
        parsed.append(data["name"])
        return parse(data, **how)

    monkeypatch.setattr(SinkSpec, "parse", counted)

    dag = sink_dag(declare(SINK), every=every, check_topics=True)

    assert sorted(dag.task_ids) == ["check_topics", "submit", "validate"]
    assert parsed == [SINK["name"]] * (declare is dict)


@pytest.mark.parametrize("kind", ["ConfigurationError", "AuthenticationError", "RefusedError", "FencedError"])
def test_the_retry_policy_does_not_retry_what_cannot_heal(kind: str) -> None:
    from airflow.sdk.definitions.retry_policy import RetryAction

    from airflow_provider_sinks.core import errors
    from airflow_provider_sinks.retry_policy import SINK_RETRY_POLICY

    decide = SINK_RETRY_POLICY.evaluate

    assert decide(getattr(errors, kind)("x"), 1, 3).action is RetryAction.FAIL
    assert decide(errors.UnavailableError("x"), 1, 3).action is RetryAction.RETRY
    assert decide(ValueError("x"), 1, 3).action is RetryAction.DEFAULT


def test_many_sinks_can_be_mapped(dag: DAG) -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    sinks = [{**SINK, "name": "one"}, {**SINK, "name": "two"}]
    check = CheckTopicsSensor.partial(task_id="check", dag=dag).expand(sink=sinks)
    submit = SubmitSinkJobOperator.partial(task_id="submit", packages="a:b:1", dag=dag).expand(sink=sinks)
    check >> submit

    assert serialised(dag) == serialised(dag)
    assert submit.unmap({"sink": sinks[1]}).outlets[0].name == "sink:two"


_TARGETS: dict[str, Any] = {
    "a topic": "kafka_out/orders-out",
    "a table by its short form": {"postgres": "pg_prod/public.orders"},
    "a table of a catalog": {"iceberg": {"catalog": "lake_prod", "table": "sales.orders"}},
    "a table of a catalog by its short form": {"iceberg": "lake_prod/sales.orders"},
    "a table on a storage": {"delta": {"connection": "s3_prod", "path": "s3://lake/orders"}},
    "a path alone": {"delta": "/lake/orders"},
}


@pytest.mark.parametrize("target", _TARGETS.values(), ids=_TARGETS)
def test_whoever_alters_a_connection_finds_all_sinks_that_name_it(dag: DAG, target: Any) -> None:
    from airflow_provider_sinks import sink_assets
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    sink = {**SINK, "target": target}
    named = SinkSpec.parse(sink).connections
    submit = SubmitSinkJobOperator(task_id="submit", sink=sink, dag=dag)
    check = CheckTopicsSensor(task_id="check", sink=sink, dag=dag)

    assert [asset.extra["connections"] for asset in (*submit.outlets, *sink_assets([sink]))] == [[*named]] * 2
    for task in (submit, check):
        assert {f"connection:{conn_id}" for conn_id in named} <= {asset.name for asset in task.inlets}


@pytest.mark.parametrize("target", _TARGETS.values(), ids=_TARGETS)
def test_the_connections_of_a_template_are_those_that_it_spells_out(dag: DAG, target: Any) -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    sink = {**SINK, "target": target}
    submit = SubmitSinkJobOperator(
        task_id="submit", sink={**sink, "where": "id > {{ params.after }}"}, dag=dag
    )

    assert submit.outlets[0].extra["connections"] == [*SinkSpec.parse(sink).connections]


def test_the_registry_of_a_sink_is_one_of_its_connections_for_who_alters_it() -> None:
    from airflow_provider_sinks.assets import connection_ids

    avro = {"connection": "kafka_test", "topic": "orders", "format": "avro", "registry": "registry_test"}

    named = connection_ids({**SINK, "source": {"kafka": avro}})

    assert named == ["kafka_test", "registry_test"]
    assert set(named) == set(SinkSpec.parse({**SINK, "source": {"kafka": avro}}).connections)
