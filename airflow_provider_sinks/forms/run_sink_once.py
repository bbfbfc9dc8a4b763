"""A form that runs a sink once: it takes what the source topic holds, and ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_sinks.connectors.target_form import TargetForm
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.fields import TOPIC_PATTERN
from airflow_provider_sinks.core.spec.kinds import SHORT, load
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

_SOURCE_FIELDS = ("sink", "connection", "source", "schema", "where")
_CONNECTION, _ACCEPT = "target_connection", "accept"
_FOLDERS = 'folders: ["/data/lake", "s3://bucket/lake"]'
_SINK = (
    '{"name": {{ params.sink | tojson }},'
    ' "source": {"kafka": {"connection": {{ params.connection | tojson }},'
    ' "topic": {{ params.source | tojson }}, "schema": {{ params.schema | tojson }}}},'
    ' "where": {{ params.where | tojson }}, "target": TARGET}'
)
"""The sink as JSON text: what a person wrote goes through ``tojson``, and stays one value."""


def run_sink_once_dag(
    dag_id: str = "run_sink_once",
    *,
    target: str = SHORT,
    connections: Sequence[str] | None = None,
    target_connections: Sequence[str] | None = None,
    paths: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    users: Sequence[str] | None = None,
    spark_conn_id: str = "spark_default",
    spark: Mapping[str, Any] | None = None,
    **dag: Any,
) -> DAG:
    """Run a sink once: it takes what the source topic holds, and ends.

    Whoever fills it in reads and writes with the rights of the connections that are chosen. The sink of
    another DAG is refused.

    :param dag_id: the DAG's id.
    :param target: the kind of target that its sinks write, as a spec names it: one of ours, or one that
        another package brings with a form.
    :param connections: those of the source to choose from; ``None`` means any.
    :param target_connections: the connections of the target to choose from, where it has one of its own; of a
        folder those of its storage, of which one must then be chosen.
    :param paths: the folders to choose from, with all below them, of a target that is a folder.
    :param values: what fields hold before anybody fills them in, by name: ``sink``, ``connection``,
        ``source``, ``schema``, ``where``, and those of the target. A sink that is named here is the form's,
        unless Airflow remembers that another task has launched it.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users)
    check_spark_arguments("run_sink_once_dag()", {} if spark is None else spark)
    form = _form_of(target)
    own = [
        *connection_problems(connections),
        *connection_problems(target_connections, "target_connections"),
        *preset_problems(values or {}, field_names(form)),
    ]
    own += _unoffered(target, form, target_connections, paths)
    demand_fitting(run_sink_once_dag, dag, [*people.problems(), *own])
    fields = _fields(
        form, form.offering(target_connections, paths), connections, target_connections, values or {}
    )
    with form_dag(run_sink_once_dag, dag_id, fields, dag) as made:
        SubmitSinkJobOperator(
            task_id="submit",
            sink=_SINK.replace("TARGET", form.target),
            spark_conn_id=spark_conn_id,
            accept="{{ params.accept or '' }}",
            own_sinks=[values["sink"]] if values and "sink" in values else [],
            **{"retries": 2, **people.guarded, **(spark or {})},
        )
    return made


def field_names(form: TargetForm) -> tuple[str, ...]:
    """Return the names of all fields, in the order in which a person sees them."""
    own = (_CONNECTION,) if form.connection is not None else ()
    return (*_SOURCE_FIELDS, *own, *form.fields, _ACCEPT)


def _form_of(target: str) -> TargetForm:
    form: TargetForm | None = load(target).form
    if form is None:
        hint = "write its sink in a DAG file, by sink_dag()"
        raise ConfigurationError(
            "run_sink_once_dag() has no form for this target", [Problem("target", f"is {target!r}", hint)]
        )
    return form


def _unoffered(target: str, form: TargetForm, connections: object, paths: object) -> Iterator[Problem]:
    """Judge what is offered for fields that a target may not have."""
    if connections is not None and form.connection is None and form.storage is None:
        yield Problem("target_connections", f"target {target!r} has no connection of its own")
    if paths is None:
        return
    if form.path is None:
        yield Problem("paths", f"target {target!r} has no path")
    elif not isinstance(paths, list | tuple) or not paths:
        yield Problem("paths", f"is {paths!r}", _FOLDERS)
    else:
        wrong = [path for path in paths if not isinstance(path, str) or not form.takes_path(path)]
        yield from (Problem("paths", f"holds {path!r}", _FOLDERS) for path in wrong)


def _fields(
    form: TargetForm,
    offered: Mapping[str, Mapping[str, Any]],
    connections: Sequence[str] | None,
    target_connections: Sequence[str] | None,
    values: Mapping[str, Any],
) -> dict[str, Param]:
    name = "A name of its own, of no other DAG's sink. The same name again goes on where the last run ended."
    schema = "As in SQL; the records are JSON."
    source: dict[str, Any] = {"type": "string", "pattern": TOPIC_PATTERN, "title": "Source topic"}
    code = {"type": ["null", "string"], "default": None, "title": "Answer to a refusal"}
    own = {field: Param(**{**rules, **preset(values, field)}) for field, rules in offered.items()}
    if form.connection is not None:
        shown = {"title": form.connection, **preset(values, _CONNECTION)}
        own = {_CONNECTION: connection_field(target_connections, **shown), **own}
    return {
        "sink": sink_field(description=name, **preset(values, "sink")),
        "connection": connection_field(connections, title="Kafka connection", **preset(values, "connection")),
        "source": Param(**source, **preset(values, "source")),
        "schema": _text("Its columns", description=schema, **preset(values, "schema")),
        "where": _text("Rows to take", examples=["true"], **preset(values, "where")),
        **own,
        _ACCEPT: Param(
            **{**code, **preset(values, _ACCEPT)},
            description="The code that the refusal printed, or nothing.",
        ),
    }


def _text(title: str, **more: Any) -> Param:
    return Param(type="string", minLength=1, title=title, **more)
