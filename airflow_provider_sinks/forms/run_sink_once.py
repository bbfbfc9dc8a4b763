"""A form that runs a sink once: it takes what the source topic holds, and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_sinks.core.spec.fields import TOPIC_PATTERN
from airflow_provider_sinks.dag.settings import check_spark_arguments
from airflow_provider_sinks.forms.fields import (
    connection_field,
    connection_problems,
    preset,
    preset_problems,
    sink_field,
)
from airflow_provider_sinks.forms.form_dag import demand_fitting, form_dag
from airflow_provider_sinks.forms.people import People
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

_TOPIC: dict[str, Any] = {"type": "string", "pattern": TOPIC_PATTERN}
_SINK: dict[str, Any] = {
    "name": "{{ params.sink }}",
    "source": {
        "kafka": {
            "connection": "{{ params.connection }}",
            "topic": "{{ params.source }}",
            "schema": "{{ params.schema }}",
        }
    },
    "where": "{{ params.where }}",
    "target": {
        "kafka": {
            "connection": "{{ params.connection }}",
            "topic": "{{ params.target }}",
            "key": ["{{ params.key }}"],
        }
    },
}


FIELDS = ("sink", "connection", "source", "schema", "where", "target", "key", "accept")


def run_sink_once_dag(
    dag_id: str = "run_sink_once",
    *,
    connections: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    users: Sequence[str] | None = None,
    spark_conn_id: str = "spark_default",
    spark: Mapping[str, Any] | None = None,
    **dag: Any,
) -> DAG:
    """Run a sink once: it takes what the source topic holds, and ends.

    Whoever fills it in reads and writes topics with the rights of the connection that is chosen.

    :param dag_id: the DAG's id.
    :param connections: the Kafka connections to choose from; ``None`` means every connection of type kafka.
    :param values: what fields hold before anybody fills them in, by name: ``sink``, ``connection``,
        ``source``, ``schema``, ``where``, ``target``, ``key``.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users)
    check_spark_arguments("run_sink_once_dag()", {} if spark is None else spark)
    own = [*connection_problems(connections), *preset_problems(values or {}, FIELDS)]
    demand_fitting(run_sink_once_dag, dag, [*people.problems(), *own])
    with form_dag(run_sink_once_dag, dag_id, _fields(connections, values or {}), dag) as made:
        SubmitSinkJobOperator(
            task_id="submit",
            sink=_SINK,
            spark_conn_id=spark_conn_id,
            accept="{{ params.accept or '' }}",
            **{"retries": 2, **people.guarded, **(spark or {})},
        )
    return made


def _fields(connections: Sequence[str] | None, values: Mapping[str, Any]) -> dict[str, Param]:
    name = "A name of its own. The same name again goes on where the last run ended."
    schema = "As in SQL; the records are JSON."
    accept = "The code that the refusal printed, or nothing."
    return {
        "sink": sink_field(description=name, **preset(values, "sink")),
        "connection": connection_field(connections, title="Kafka connection", **preset(values, "connection")),
        "source": Param(**_TOPIC, title="Source topic", **preset(values, "source")),
        "schema": _text("Its columns", description=schema, **preset(values, "schema")),
        "where": _text("Rows to take", examples=["true"], **preset(values, "where")),
        "target": Param(**_TOPIC, title="Target topic", **preset(values, "target")),
        "key": _text("Column that is the key", **preset(values, "key")),
        "accept": Param(
            **{"default": None, **preset(values, "accept")},
            type=["null", "string"],
            title="Answer to a refusal",
            description=accept,
        ),
    }


def _text(title: str, **more: Any) -> Param:
    return Param(type="string", minLength=1, title=title, **more)
