"""A form that alters a connection under running sinks: look first, approve what takes options away, apply."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_sinks.connectors.schema_registry.connection_type import SCHEMA_REGISTRY
from airflow_provider_sinks.core.alter.leave import SECRET_PREFIX, leave_problems
from airflow_provider_sinks.core.connection.airflow_account import CONN_ID, account_problems
from airflow_provider_sinks.core.connection.types import all_address_names, all_secret_names, known_types
from airflow_provider_sinks.forms.fields import (
    connection_field,
    connection_problems,
    server_problems,
    server_rule,
)
from airflow_provider_sinks.forms.form_dag import LOOK_AGAIN, demand_fitting, form_dag
from airflow_provider_sinks.forms.people import People
from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

_NAMES: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string", "pattern": r"^[\w.-]+$"}}
_ASKED: dict[str, Any] = {
    "conn_id": "{{ params.conn_id }}",
    "set": "{{ params.set | tojson }}",
    "drop": "{{ (params.drop or []) | join(',') }}",
    "reset": "{{ (params.reset or []) | join(',') }}",
    "rollback": "{{ params.rollback }}",
}
_SOUNDING = r"[pP]assw|[sS]ecret|[tT]oken|[cC]redential|[aA]uthorization|jaas|user\.info|account-key|key\.pem"
"""What no option may hold in clear, whether a type of connection knows it or not: it would stand in the conf
of the run before it could be refused."""
_SUBJECT = "Take options away from connection {{ params.conn_id }}?"
_BODY = (
    "```json\n{{ {'drop': params.drop, 'reset': params.reset} | tojson }}\n```\n\n"
    "What was checked: the log of task *plan*."
)


def alter_connection_dag(
    dag_id: str = "alter_connection",
    *,
    connections: Sequence[str] | None = None,
    servers: Sequence[str] | None = None,
    users: Sequence[str] | None = None,
    approvers: Mapping[str, str] | None = None,
    secret_prefix: str = SECRET_PREFIX,
    allowed_files: Sequence[str] = (),
    airflow_api_conn_id: str = CONN_ID,
    **dag: Any,
) -> DAG:
    """Alter a connection under running sinks: look first, approve what takes options away, apply.

    A stored secret is sent only to where it was stored for: whoever changes that gives every secret anew,
    each as the name of a Variable.

    :param dag_id: the DAG's id.
    :param connections: those that may be altered; ``None`` means every one that a sink may use.
    :param servers: where new options may lead to, written as the option is: ``["new:9093"]`` for Kafka,
        ``["pg.example"]`` for Postgres, ``["https://registry:8081"]`` for a registry, a catalog or a storage,
        ``["s3://bucket/folder"]`` for where tables lie. It holds for each option of each type that leads to
        a server; ``None`` means anywhere, and then a Variable that is there for alterations goes wherever the
        person who fills in the form says.
    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param approvers: who may approve, the name of each by its user id; else whoever may edit the DAG.
    :param secret_prefix: how the names of the Variables begin that may be read as secrets.
    :param allowed_files: the files of the worker that options may be made to name.
    :param airflow_api_conn_id: the connection to Airflow's REST API, with whose rights the change is made.
    :param dag: what :class:`airflow.sdk.DAG` takes, and ``owner``; wins over what is set here.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """
    people = People(users, approvers or {})
    leave = {"keep_secrets": False, "secret_prefix": secret_prefix, "allowed_files": allowed_files}
    offered = [account_problems(conn_id, airflow_api_conn_id) for conn_id in connections or ()]
    own = [*connection_problems(connections), *server_problems(servers), *leave_problems(leave)]
    own += [replace(one, where="connections") for found in offered for one in found]
    demand_fitting(alter_connection_dag, dag, [*people.problems(), *own])
    fields = _fields(connections, servers, secret_prefix, airflow_api_conn_id)
    with form_dag(alter_connection_dag, dag_id, fields, dag) as made:
        asked = {**_ASKED, **leave, "airflow_api_conn_id": airflow_api_conn_id, **people.guarded}
        plan = AlterConnectionRestartOperator(task_id="plan", dry_run=True, **LOOK_AGAIN, **asked)
        apply = AlterConnectionRestartOperator(
            task_id="apply",
            dry_run="{{ params.dry_run }}",  # whoever may mark others as done has no dry run carried out
            retries=3,
            trigger_rule="none_failed_min_one_success",
            **asked,
        )
        plan >> (choice := decide()) >> people.approval(_SUBJECT, _BODY) >> apply
        choice >> apply
    return made


@task.branch
def decide(params: dict[str, Any] | None = None) -> str | None:
    """Do nothing in a dry run; ask first where options are taken away."""
    asked = params or {}
    if asked["dry_run"]:
        return None
    return "approve" if asked["drop"] or asked["reset"] else "apply"


def _types() -> str:
    return ", ".join(sorted(known_types().keys() - {SCHEMA_REGISTRY.name}))


def _secret_pattern() -> str:
    """Return the pattern of all names of secret options, those of each type, and what sounds like one."""
    known = "|".join(map(re.escape, sorted(all_secret_names())))
    return f"^({known})$|{_SOUNDING}"


def _secret_rule(prefix: str) -> dict[str, Any]:
    """Return what a secret option must be: the name of a Variable that is there for it."""
    named = {"type": "string", "pattern": rf"^{re.escape(prefix)}[\w.-]+$"}
    return {
        "type": "object",
        "properties": {"secret": named},
        "required": ["secret"],
        "additionalProperties": False,
    }


def _fields(
    connections: Sequence[str] | None, servers: Sequence[str] | None, secret_prefix: str, account: str
) -> dict[str, Param]:
    return {
        "conn_id": connection_field(
            connections,
            {CONN_ID, account},
            description=f"The id of a connection of type {_types()}, or of a schema registry.",
        ),
        "set": Param(
            {},
            type="object",
            properties={}
            if servers is None
            else dict.fromkeys(sorted(all_address_names()), server_rule(servers)),
            patternProperties={_secret_pattern(): _secret_rule(secret_prefix)},
            additionalProperties={"type": ["string", "number", "boolean"]},
            title="Set",
            description='Options and their new values, such as {"bootstrap.servers": "new:9093"}. A secret '
            f'is named, never written here: {{"sasl.password": {{"secret": "{secret_prefix}<name>"}}}}.',
        ),
        "drop": Param([], **_NAMES, title="Drop", description="Options to take away, one on each line."),
        "reset": Param(
            [],
            **_NAMES,
            title="Reset",
            description="Options to put back to their defaults, one on each line.",
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
