"""A form that replays dead letters of a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.dag.settings import check_spark_arguments
from airflow_provider_sinks.forms.fields import Sinks, sink_field, sink_problems
from airflow_provider_sinks.forms.form_dag import LOOK_AGAIN, demand_fitting, form_dag
from airflow_provider_sinks.forms.people import People
from airflow_provider_sinks.forms.sink_life import DRY_RUN, SINK, TIME_PATTERN, approved, dry_run_field
from airflow_provider_sinks.operators.replay_dead_letters import BeginReplayOperator, replaying

_RANGES_PATTERN = r"^\s*\d+[:=]\d+(-\d+)?(\s*[,\s]\s*\d+[:=]\d+(-\d+)?)*\s*$"
_ASKED = ("error", "since", "before", "offsets")


def replay_dead_letters_dag(
    dag_id: str = "replay_dead_letters",
    *,
    sinks: Sinks = (),
    users: Sequence[str] | None = None,
    approvers: Mapping[str, str] | None = None,
    airflow_api_conn_id: str = CONN_ID,
    spark_conn_id: str = "spark_default",
    spark: Mapping[str, Any] | None = None,
    **dag: Any,
) -> DAG:
    """Replay dead letters of a sink through its spec as it is now: show the plan, ask somebody, do it.

    Each leads to its rows once, however often this is done. What fails again comes back, with a counter.

    :param dag_id: the DAG's id.
    :param sinks: those that the form suggests, or their names; others can be written too.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param approvers: who may approve, the name of each by its user id; else whoever may edit the DAG.
    :param airflow_api_conn_id: the connection to Airflow's REST API, with whose rights it is done.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users, approvers or {})
    check_spark_arguments("replay_dead_letters_dag()", {} if spark is None else spark)
    demand_fitting(replay_dead_letters_dag, dag, [*people.problems(), *sink_problems(sinks)])
    fields = {"sink": sink_field(sinks), **_fields(), "dry_run": dry_run_field()}
    asked: dict[str, Any] = {"sink": SINK, "airflow_api_conn_id": airflow_api_conn_id, **people.guarded}
    asked |= {name: f"{{{{ params.{name} or '' }}}}" for name in _ASKED}
    asked |= {name: f"{{{{ params.{name} }}}}" for name in ("overwrite", "forget")}
    with form_dag(replay_dead_letters_dag, dag_id, fields, dag) as made:
        begin = BeginReplayOperator(task_id="begin", dry_run=DRY_RUN, **asked)
        plan = BeginReplayOperator(task_id="plan", dry_run=True, **LOOK_AGAIN, **asked)
        approved(people, plan, begin)
        begin >> replaying(begin, spark_conn_id, spark, **people.guarded)
    return made


def _fields() -> dict[str, Param]:
    time: dict[str, Any] = {"type": ["null", "string"], "format": "date-time", "pattern": TIME_PATTERN}
    return {
        "error": Param(
            None,
            type=["null", "string"],
            format="multiline",
            title="Errors",
            description="Classes of errors, or parts of their text, one a line; nothing means all.",
            examples=["parse"],
        ),
        "since": Param(None, title="Set aside since", examples=["2026-11-20T22:00:00Z"], **time),
        "before": Param(None, title="Set aside before", **time),
        "offsets": Param(
            None,
            type=["null", "string"],
            pattern=_RANGES_PATTERN,
            title="Offsets",
            description="Of the dead-letter topic, by partition.",
            examples=["0:120-140, 1:7"],
        ),
        "overwrite": Param(
            False,
            type="boolean",
            title="Older rows may replace newer ones",
            description="Where the target keeps the newest row of each key.",
        ),
        "forget": Param(
            False,
            type="boolean",
            title="Take again what nobody knows to be taken",
            description="Where the progress of earlier replays is lost.",
        ),
    }
