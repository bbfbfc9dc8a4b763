"""Forms for whoever presses "Trigger" in Airflow: stop and start a sink, let it read again, begin it anew."""

# [START forms]
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param, task

from airflow_provider_sinks.operators.sink_life import (
    PauseSinkOperator,
    ResetSinkOperator,
    RestartSinkOperator,
    ResumeSinkOperator,
    RewindSinkOperator,
)

START = datetime(2025, 1, 1, tzinfo=UTC)

SINK = Param(
    type="string",
    pattern=r"^[A-Za-z0-9_-]{1,100}$",
    title="Sink",
    description="Its name, as the list of assets shows it behind `sink:`.",
    examples=["pageviews_clean", "pageviews_enriched"],
)
DRY_RUN = Param(True, type="boolean", title="Dry run", description="Only show what would be done.")
OUTPUT: dict[str, Any] = {
    "type": "string",
    "enum": ["keep", "empty", "recreate"],
    "values_display": {
        "keep": "keep what it holds",
        "empty": "delete its records",
        "recreate": "delete the topic and make it anew",
    },
}


def approved(plan: Any, act: Any) -> None:
    """Show the plan; unless it is a dry run, go on when somebody has approved it."""

    @task.short_circuit
    def not_a_dry_run(params: dict[str, Any] | None = None) -> bool:
        return not (params or {})["dry_run"]

    approve = ApprovalOperator(
        task_id="approve",
        subject="Shall sink {{ params.sink }} be changed like this?",
        body="{{ ti.xcom_pull('plan') | tojson(2) }}",
        defaults=ApprovalOperator.REJECT,
        response_timeout=timedelta(hours=1),
    )
    plan >> not_a_dry_run() >> approve >> act


with DAG(
    "pause_or_resume_sink",
    schedule=None,
    start_date=START,
    tags=["sinks"],
    params={
        "sink": SINK,
        "action": Param(
            "pause",
            type="string",
            enum=["pause", "resume", "restart"],
            title="What to do",
            description="Pause ends what runs, and lets nothing start it. Nothing is lost or written twice.",
        ),
    },
):

    @task.branch
    def choose(params: dict[str, Any] | None = None) -> str:
        """Go the way that was chosen in the form."""
        return str((params or {})["action"])

    choose() >> [
        PauseSinkOperator(task_id="pause", sink="{{ params.sink }}"),
        ResumeSinkOperator(task_id="resume", sink="{{ params.sink }}"),
        RestartSinkOperator(task_id="restart", sink="{{ params.sink }}"),
    ]

with DAG(
    "rewind_sink",
    schedule=None,
    start_date=START,
    tags=["sinks"],
    params={
        "sink": SINK,
        "offsets": Param(
            None,
            type=["null", "string"],
            pattern=r"^\s*\d+\s*[:=]\s*(\d+|earliest|latest)(\s*,\s*\d+\s*[:=]\s*(\d+|earliest|latest))*\s*$",
            title="To offsets",
            description="By source partition. Give this, or a time, or an epoch.",
            examples=["0:120,1:earliest"],
        ),
        "time": Param(
            None,
            type=["null", "string"],
            format="date-time",
            pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$",
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
        "dry_run": DRY_RUN,
    },
):
    place = {name: f"{{{{ params.{name} or '' }}}}" for name in ("offsets", "time", "epoch")}
    approved(
        RewindSinkOperator(task_id="plan", sink="{{ params.sink }}", dry_run=True, **place),
        RewindSinkOperator(task_id="rewind", sink="{{ params.sink }}", **place),
    )

with DAG(
    "reset_sink",
    schedule=None,
    start_date=START,
    tags=["sinks"],
    params={
        "sink": SINK,
        "data": Param("keep", title="The data topic", **OUTPUT),
        "dead_letter": Param("keep", title="The dead-letter topic", **OUTPUT),
        "dry_run": DRY_RUN,
    },
):
    outputs = {name: f"{{{{ params.{name} }}}}" for name in ("data", "dead_letter")}
    approved(
        ResetSinkOperator(task_id="plan", sink="{{ params.sink }}", dry_run=True, **outputs),
        ResetSinkOperator(task_id="reset", sink="{{ params.sink }}", **outputs),
    )
# [END forms]
