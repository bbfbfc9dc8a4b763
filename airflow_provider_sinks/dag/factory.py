"""DAGs and task groups for sinks: what most DAG authors use.

    dag = sink_dag(pageviews, every=timedelta(seconds=1))

gives validate >> submit, scheduled so that unpausing starts the sink and pausing (then ending the task) stops
it. The same sink gives the same DAG, byte for byte; nothing here connects to anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, TaskGroup

from airflow_provider_sinks.arguments import parse
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.questions import AskSpark
from airflow_provider_sinks.core.spec.durations import parse_duration
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.settings import (
    check_dag_arguments,
    check_flag,
    check_group_arguments,
    check_spark_arguments,
    dag_arguments,
    heals_itself,
    needs_you,
)
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

__all__ = ["ACCEPT", "SinkTaskGroup", "heals_itself", "needs_you", "sink_dag"]

ACCEPT = "{{ params.get('accept') or '' }}"
"""Takes the accept code from the form that the UI shows when a person triggers the DAG."""

_DAG_OWN = ("every", "check_topics", "owner", "owner_link", "spark_conn_id", "spark")
_GROUP_OWN = ("sink", "check_topics", "accept", "spark_conn_id", "spark")


class SinkTaskGroup(TaskGroup):
    """The tasks of one sink inside a DAG of yours: validate >> check topics >> submit.

    :param sink: the sink, literal: it is checked here, when the DAG file is read.
    :param group_id: the sink's name, if left out.
    :param check_topics: whether to wait for the topics before submitting; the job decides again by itself.
    :param accept: a one-time answer to a refusal; by default the DAG's parameter ``accept``, if it has one.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param group: what :class:`airflow.sdk.TaskGroup` takes.
    :raises ConfigurationError: the sink is not valid, or an argument is not known.
    """

    def __init__(
        self,
        sink: SinkSpec | Mapping[str, Any],
        *,
        group_id: str | None = None,
        check_topics: bool = True,
        accept: str = ACCEPT,
        spark_conn_id: str = "spark_default",
        spark: Mapping[str, Any] | None = None,
        **group: Any,
    ) -> None:
        spec = parse(sink, reads_files=True)
        check_group_arguments("SinkTaskGroup()", group, _GROUP_OWN)
        check_flag("SinkTaskGroup()", "check_topics", check_topics)
        check_spark_arguments("SinkTaskGroup()", {} if spark is None else spark)
        super().__init__(group_id=group_id or spec.name, **group)
        with self:
            _chain(spec, check_topics, accept, spark_conn_id, spark or {})


def sink_dag(
    sink: SinkSpec | Mapping[str, Any],
    *,
    every: timedelta | str | None = None,
    check_topics: bool | None = None,
    owner: str | None = None,
    owner_link: str | None = None,
    spark_conn_id: str = "spark_default",
    spark: Mapping[str, Any] | None = None,
    **dag: Any,
) -> DAG:
    """Return the DAG of one sink.

    An endless sink runs ``@continuous``: a run ends only when a person is needed, and then the DAG pauses
    itself. A sink that takes what is there (``available_now``) runs on your ``schedule``.

    :param sink: the sink; it is checked here, when the DAG file is read.
    :param every: makes it an endless sink with an epoch that often; wins over the sink's own trigger.
    :param check_topics: whether to wait for the topics before submitting. In an endless sink that only
        repeats the job's own decision, so it is left out unless asked for.
    :param owner: whose DAG it is; shown in the UI.
    :param owner_link: where the owner's name leads to: ``https://...`` or ``mailto:...``.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param dag: what :class:`airflow.sdk.DAG` takes; wins over what is set here.
    :raises ConfigurationError: the sink is not valid, or an argument is not known.
    """
    check_dag_arguments("sink_dag()", dag, _DAG_OWN, owner_link, owner)
    check_flag("sink_dag()", "check_topics", check_topics)
    check_spark_arguments("sink_dag()", {} if spark is None else spark)
    spec = _with_trigger(parse(sink, reads_files=True), every)
    check = spec.trigger.available_now if check_topics is None else check_topics
    with DAG(**dag_arguments(spec, owner, owner_link, dag)) as made:  # noqa: AIR002  the schedule is in there
        _chain(spec, check, ACCEPT, spark_conn_id, spark or {})
    return made


def check_sink_dag_arguments(function: str, given: Mapping[str, Any]) -> None:
    """Refuse what :func:`sink_dag` does not take, whatever the sink is.

    :param function: who is asked, for the message.
    :raises ConfigurationError: with what was found first.
    """
    others = {name: value for name, value in given.items() if name not in _DAG_OWN}
    check_dag_arguments(function, others, _DAG_OWN, None, None)
    check_flag(function, "check_topics", given.get("check_topics"))
    check_spark_arguments(function, given.get("spark") or {})
    _check_every(function, given.get("every"))


def _chain(
    spec: SinkSpec, check_topics: bool, accept: str, spark_conn_id: str, spark: Mapping[str, Any]
) -> None:
    """Add the tasks of a sink to the DAG or group around."""
    validate = ValidateConnectionOperator(
        task_id="validate",
        sink=spec,
        spark_conn_id=spark_conn_id,
        ask_spark=AskSpark.NEVER.value,  # the job asks a moment later, before it makes anything
    )
    submit = SubmitSinkJobOperator(
        task_id="submit", sink=spec, spark_conn_id=spark_conn_id, accept=accept, **spark
    )
    if check_topics:
        validate >> CheckTopicsSensor(task_id="check_topics", sink=spec, accept=accept) >> submit
    else:
        validate >> submit


def _check_every(function: str, every: timedelta | str | None) -> None:
    try:
        parse_duration(every) if every is not None else None
    except UnfitError as unfit:
        problem = Problem("every", str(unfit), unfit.hint)
        raise ConfigurationError(f"{function} cannot take some of its arguments", [problem]) from None


def _with_trigger(spec: SinkSpec, every: timedelta | str | None) -> SinkSpec:
    if every is None:
        return spec
    _check_every("sink_dag()", every)
    return spec.with_trigger({"every": every})
