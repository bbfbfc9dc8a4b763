"""Every operator and sensor as an author of a DAG writes them: plain, templated, mapped, fed by a task."""

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_sinks import sink_assets
from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator
from airflow_provider_sinks.operators.replay_dead_letters import BeginReplayOperator, ReplayTaskGroup
from airflow_provider_sinks.operators.sink_life import (
    DropSinkOperator,
    PauseSinkOperator,
    ResetSinkOperator,
    RestartSinkOperator,
    ResumeSinkOperator,
    RewindSinkOperator,
)
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

SINKS = [
    {"name": name, "source": f"kafka_prod/{name}", "target": f"kafka_prod/{name}-out"} for name in ("a", "b")
]
CONF = {"spark.b": "1", "spark.a": "2"}

with DAG("plain", schedule=None, tags=["z", "a", "m"], default_args={"retries": 2}):
    (
        ValidateConnectionOperator(task_id="validate", sink=SINKS[0])
        >> CheckTopicsSensor(task_id="check", sink=SINKS[0], deferrable=True, on_unknown="fail")
        >> SubmitSinkJobOperator(task_id="submit", sink=SINKS[0], packages="a:b:1", conf=CONF)
    )
    AlterConnectionRestartOperator(
        task_id="alter", conn_id="kafka_prod", set={"b": 1, "a": 2}, drop={"d", "c"}
    )
    AlterConnectionRestartOperator(task_id="say", statement="ALTER CONNECTION kafka_prod DROP (client.id)")

with DAG("verbs", schedule=None, params={"name": "a", "time": "2026-11-20T22:00:00Z", "dry_run": True}):
    (
        PauseSinkOperator(task_id="pause", sink="a")
        >> RewindSinkOperator(task_id="rewind", sink=SINKS[0], offsets={0: 12, 1: "earliest"}, skip=True)
        >> ResetSinkOperator(task_id="reset", sink="{{ params.name }}", data="{{ params.name }}")
        >> ResumeSinkOperator(task_id="resume", sink="{{ params.name }}", dry_run="{{ params.dry_run }}")
        >> RestartSinkOperator(task_id="restart", sink="a", airflow_api_conn_id="{{ params.name }}")
        >> DropSinkOperator(task_id="drop", sink="a", delete_topics=["a-out"])
    )
    ReplayTaskGroup(SINKS[0], group_id="replay", asked={"error": ["parse"], "before": "{{ params.time }}"})
    BeginReplayOperator(task_id="replay_by_form", sink="{{ params.name }}", dry_run="{{ params.dry_run }}")
    RewindSinkOperator(task_id="rewind_by_form", sink="{{ params.name }}", time="{{ params.time }}")
    PauseSinkOperator.partial(task_id="pause_all").expand(sink=["a", "b"])

with DAG("templated", schedule=None, params={"name": "a"}):
    SINK = {**SINKS[0], "name": "{{ params.name }}"}
    ValidateConnectionOperator(task_id="validate", sink=SINK, spark_conn_id="{{ params.name }}")
    ValidateConnectionOperator(task_id="validate_one", conn_id="{{ params.name }}")
    CheckTopicsSensor(task_id="check", sink=SINK, accept="{{ params.name }}", mode="reschedule")
    SubmitSinkJobOperator(task_id="submit", sink=SINK, spark_conn_id="{{ params.name }}", conf=CONF)
    NAME = "{{ params.name }}"
    AlterConnectionRestartOperator(task_id="alter", conn_id=NAME, set=NAME, drop=NAME, dry_run=NAME)
    AlterConnectionRestartOperator(task_id="say", statement=NAME)

with DAG("mapped", schedule=None):
    ASSETS = sink_assets(SINKS)
    ValidateConnectionOperator.partial(task_id="validate").expand(sink=SINKS)
    ValidateConnectionOperator.partial(task_id="validate_ids").expand(conn_id=["kafka_prod", "pg_prod"])
    AlterConnectionRestartOperator.partial(task_id="alter", drop=["a"]).expand(
        conn_id=["kafka_prod", "pg_prod"]
    )
    CheckTopicsSensor.partial(task_id="check", inlets=ASSETS, deferrable=True).expand(sink=SINKS)
    SubmitSinkJobOperator.partial(task_id="submit", outlets=ASSETS, packages="a:b:1").expand(sink=SINKS)
    SubmitSinkJobOperator.partial(task_id="submit_kwargs").expand_kwargs([{"sink": sink} for sink in SINKS])

with DAG("fed", schedule=None):

    @task
    def find_sinks() -> list[dict[str, str]]:
        return SINKS

    @task(multiple_outputs=False)
    def find_sink() -> dict[str, str]:
        return SINKS[0]

    FOUND: Any = find_sinks()
    ONE: Any = find_sink()
    ValidateConnectionOperator(task_id="validate", sink=ONE)
    CheckTopicsSensor(task_id="check", sink=ONE)
    AlterConnectionRestartOperator(task_id="alter", conn_id="kafka_prod", set=ONE)
    SubmitSinkJobOperator(task_id="submit", sink=ONE)
    ValidateConnectionOperator.partial(task_id="validate_many").expand(sink=FOUND)
    CheckTopicsSensor.partial(task_id="check_many").expand(sink=FOUND)
    SubmitSinkJobOperator.partial(task_id="submit_many").expand(sink=FOUND)
