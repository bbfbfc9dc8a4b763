"""Forms of a sink's life: stop and start it, let it read again, begin it anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, task

from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.forms.fields import Sinks, sink_field, sink_problems
from airflow_provider_sinks.forms.form_dag import LOOK_AGAIN, demand_fitting, form_dag
from airflow_provider_sinks.forms.people import People
from airflow_provider_sinks.operators.sink_life import (
    PauseSinkOperator,
    ResetSinkOperator,
    RestartSinkOperator,
    ResumeSinkOperator,
    RewindSinkOperator,
)

SINK = "{{ params.sink }}"
DRY_RUN = "{{ params.dry_run }}"
"""For the task that acts too: whoever may mark others as done has no dry run carried out."""
_SUBJECT = "Shall sink {{ params.sink }} be changed like this?"
_BODY = "```json\n{{ ti.xcom_pull('plan') | tojson(2) }}\n```"
"""As code: what a person wrote into the form is no Markdown to who approves it."""
_OFFSETS_PATTERN = r"^\s*\d+\s*[:=]\s*(\d+|earliest|latest)(\s*,\s*\d+\s*[:=]\s*(\d+|earliest|latest))*\s*$"
TIME_PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$"
_OUTPUT: dict[str, Any] = {
    "type": "string",
    "enum": ["keep", "empty", "recreate"],
    "values_display": {
        "keep": "keep what it holds",
        "empty": "delete its records",
        "recreate": "delete it and make it anew",
    },
}


def pause_or_resume_dag(
    dag_id: str = "pause_or_resume_sink",
    *,
    sinks: Sinks = (),
    users: Sequence[str] | None = None,
    airflow_api_conn_id: str = CONN_ID,
    **dag: Any,
) -> DAG:
    """Pause, resume or restart a sink. Nothing is lost or written twice.

    :param dag_id: the DAG's id.
    :param sinks: those that the form suggests, or their names; others can be written too.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param airflow_api_conn_id: the connection to Airflow's REST API, with whose rights it is done.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users)
    demand_fitting(pause_or_resume_dag, dag, [*people.problems(), *sink_problems(sinks)])
    fields = {"sink": sink_field(sinks), "action": _action_field()}
    asked: dict[str, Any] = {"sink": SINK, "airflow_api_conn_id": airflow_api_conn_id, **people.guarded}
    with form_dag(pause_or_resume_dag, dag_id, fields, dag) as made:
        choose() >> [
            PauseSinkOperator(task_id="pause", dry_run=_unless("pause"), **asked),
            ResumeSinkOperator(task_id="resume", dry_run=_unless("resume"), **asked),
            RestartSinkOperator(task_id="restart", dry_run=_unless("restart"), **asked),
        ]
    return made


def rewind_dag(
    dag_id: str = "rewind_sink",
    *,
    sinks: Sinks = (),
    users: Sequence[str] | None = None,
    approvers: Mapping[str, str] | None = None,
    airflow_api_conn_id: str = CONN_ID,
    **dag: Any,
) -> DAG:
    """Let a stopped sink read a part of its source again: show the plan, ask somebody, do it.

    :param dag_id: the DAG's id.
    :param sinks: those that the form suggests, or their names; others can be written too.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param approvers: who may approve, the name of each by its user id; else whoever may edit the DAG.
    :param airflow_api_conn_id: the connection to Airflow's REST API, with whose rights it is done.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users, approvers or {})
    demand_fitting(rewind_dag, dag, [*people.problems(), *sink_problems(sinks)])
    fields = {"sink": sink_field(sinks), **_place_fields(), "dry_run": dry_run_field()}
    asked: dict[str, Any] = {"sink": SINK, "airflow_api_conn_id": airflow_api_conn_id, **people.guarded}
    asked |= {name: f"{{{{ params.{name} or '' }}}}" for name in ("offsets", "time", "epoch")}
    with form_dag(rewind_dag, dag_id, fields, dag) as made:
        approved(
            people,
            RewindSinkOperator(task_id="plan", dry_run=True, **LOOK_AGAIN, **asked),
            RewindSinkOperator(task_id="rewind", dry_run=DRY_RUN, **asked),
        )
    return made


def reset_dag(
    dag_id: str = "reset_sink",
    *,
    sinks: Sinks = (),
    users: Sequence[str] | None = None,
    approvers: Mapping[str, str] | None = None,
    airflow_api_conn_id: str = CONN_ID,
    **dag: Any,
) -> DAG:
    """Begin a stopped sink anew where its spec says: show the plan, ask somebody, do it.

    :param dag_id: the DAG's id.
    :param sinks: those that the form suggests, or their names; others can be written too.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param approvers: who may approve, the name of each by its user id; else whoever may edit the DAG.
    :param airflow_api_conn_id: the connection to Airflow's REST API, with whose rights it is done.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users, approvers or {})
    demand_fitting(reset_dag, dag, [*people.problems(), *sink_problems(sinks)])
    topics = {"data": "The data topic or table", "dead_letter": "The dead-letter topic or table"}
    outputs = {name: Param("keep", title=title, **_OUTPUT) for name, title in topics.items()}
    fields = {"sink": sink_field(sinks), **outputs, "dry_run": dry_run_field()}
    asked: dict[str, Any] = {"sink": SINK, "airflow_api_conn_id": airflow_api_conn_id, **people.guarded}
    asked |= {name: f"{{{{ params.{name} }}}}" for name in topics}
    with form_dag(reset_dag, dag_id, fields, dag) as made:
        approved(
            people,
            ResetSinkOperator(task_id="plan", dry_run=True, **LOOK_AGAIN, **asked),
            ResetSinkOperator(task_id="reset", dry_run=DRY_RUN, **asked),
        )
    return made


@task.branch
def choose(params: dict[str, Any] | None = None) -> str:
    """Go the way that was chosen in the form."""
    return str((params or {})["action"])


@task.short_circuit
def not_a_dry_run(params: dict[str, Any] | None = None) -> bool:
    """Go on unless it is a dry run."""
    return not (params or {})["dry_run"]


def _unless(action: str) -> str:
    """Return a dry run for a task that was not chosen: whoever may clear it chooses nothing else by that."""
    return f"{{{{ params.action != {action!r} }}}}"


def approved(people: People, plan: BaseOperator, act: BaseOperator) -> None:
    """Show the plan; unless it is a dry run, go on when somebody has approved it."""
    plan >> not_a_dry_run() >> people.approval(_SUBJECT, _BODY) >> act


def dry_run_field() -> Param:
    """Return the field that asks whether the plan is only shown."""
    return Param(True, type="boolean", title="Dry run", description="Only show what would be done.")


def _action_field() -> Param:
    return Param(
        "pause",
        type="string",
        enum=["pause", "resume", "restart"],
        title="What to do",
        description="Pause ends what runs, and lets nothing start it. Nothing is lost or written twice.",
    )


def _place_fields() -> dict[str, Param]:
    return {
        "offsets": Param(
            None,
            type=["null", "string"],
            pattern=_OFFSETS_PATTERN,
            title="To offsets",
            description="By source partition. Give this, or a time, or an epoch.",
            examples=["0:120,1:earliest"],
        ),
        "time": Param(
            None,
            type=["null", "string"],
            format="date-time",
            pattern=TIME_PATTERN,
            title="Or to a time",
            examples=["2026-11-20T22:00:00Z"],
        ),
        "epoch": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Or to an epoch",
            description="The first that is written again.",
        ),
    }
