"""A form that alters a connection under running sinks: look first, approve what takes options away, apply."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param, task

from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

SECRET: dict[str, Any] = {
    "type": "object",
    "properties": {"secret": {"type": "string", "pattern": r"^[\w.-]+$"}},
    "required": ["secret"],
    "additionalProperties": False,
}
NAMES: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string", "pattern": r"^[\w.]+$"}}
FORM = {
    "conn_id": Param(
        "kafka_prod",
        type="string",
        pattern=r"^[\w.-]+$",
        title="Connection",
        description="The id of a connection of type kafka or postgres.",
    ),
    "set": Param(
        {},
        type="object",
        patternProperties={r"(password|secret|key\.pem)$": SECRET},
        additionalProperties={"type": ["string", "number", "boolean", "object"]},
        title="Set",
        description='Options and their new values, such as {"bootstrap.servers": "new:9093"}. A secret is '
        'named, never written here: {"sasl.password": {"secret": "<name of a Variable>"}}.',
    ),
    "drop": Param([], **NAMES, title="Drop", description="Options to take away, one on each line."),
    "reset": Param(
        [], **NAMES, title="Reset", description="Options to put back to their defaults, one on each line."
    ),
    "dry_run": Param(
        True, type="boolean", title="Only look", description="Check, show the steps, and change nothing."
    ),
    "rollback": Param(
        True,
        type="boolean",
        title="Roll back",
        description="Put the old options back when a sink that was running does not run on the new ones.",
    ),
}
# [START alter_form]
ASKED: dict[str, Any] = {
    "conn_id": "{{ params.conn_id }}",
    "set": "{{ params.set | tojson }}",
    "drop": "{{ (params.drop or []) | join(',') }}",
    "reset": "{{ (params.reset or []) | join(',') }}",
    "rollback": "{{ params.rollback }}",
}

with DAG("alter_connection", schedule=None, params=FORM, tags=["sinks"], max_active_runs=1):
    plan = AlterConnectionRestartOperator(task_id="plan", dry_run=True, **ASKED)

    @task.branch
    def decide(params: dict[str, Any] | None = None) -> str | None:
        asked = params or {}
        if asked["dry_run"]:
            return None
        return "approve" if asked["drop"] or asked["reset"] else "apply"

    approve = ApprovalOperator(
        task_id="approve",
        subject="Take options away from connection {{ params.conn_id }}?",
        body="Drop: {{ params.drop }}. Reset: {{ params.reset }}. What was checked: the log of task *plan*.",
        defaults=ApprovalOperator.REJECT,
        response_timeout=timedelta(hours=1),
    )
    apply = AlterConnectionRestartOperator(
        task_id="apply", retries=3, trigger_rule="none_failed_min_one_success", **ASKED
    )

    plan >> (choice := decide()) >> approve >> apply
    choice >> apply
# [END alter_form]
