"""Which sinks use a connection, and how each does: read from Airflow's assets, by its REST API.

Only what is named in a DAG of this Airflow is seen. A sink whose name is only known when its task runs has no
asset; nor does one that is mapped without ``outlets=sink_assets(...)``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.core.alter.backup import Holder
from airflow_provider_sinks.core.alter.dependents import Dependent, LaunchSeen, newest_states
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

_PREFIX = "sink:"
_INSTANCES = 100
"""So many of a task's newest instances are looked at."""


@dataclass(frozen=True)
class SinkAsset:
    """The asset of a sink.

    :param spec: the sink as its DAG names it; ``None`` where that cannot be read.
    :param tasks: the DAG and the id of each task that runs it.
    """

    id: int
    sink: str
    spec: Mapping[str, Any] | None
    tasks: tuple[tuple[str, str], ...]


def assets_using(api: AirflowApi, conn_id: str) -> list[SinkAsset]:
    """Return the assets of all sinks that use a connection, by name; paused DAGs count too."""
    found = api.all("assets", "assets", name_prefix_pattern=_PREFIX, order_by="name")
    return [_asset(asset) for asset in found if _uses(asset, conn_id)]


def observe(api: AirflowApi, asset: SinkAsset) -> tuple[Dependent, Mapping[str, Any] | None]:
    """Return what a sink does now, and what Airflow remembers of its progress."""
    stored = {entry["key"]: entry["value"] for entry in _stored(api, asset.id)}
    status, memory = _document(stored.get("status")), _document(stored.get("witness"))
    dags = {dag_id: api.find(f"dags/{dag_id}") or {} for dag_id in {dag_id for dag_id, _ in asset.tasks}}
    dependent = Dependent(
        sink=asset.sink,
        spec=asset.spec,
        follows=(status or {}).get("follow_connections", True) is not False,
        states=tuple(state for task in asset.tasks for state in _states(api, *task)),
        paused=bool(dags) and all(dag.get("is_paused", False) for dag in dags.values()),
        seen=LaunchSeen.of(status, memory),
    )
    return dependent, memory


def task_state(api: AirflowApi, holder: Holder) -> str:
    """Return the state of a task; ``gone`` when Airflow does not know it any more."""
    path = f"dags/{holder.dag_id}/dagRuns/{quote(holder.run_id, safe='')}/taskInstances/{holder.task_id}"
    found = api.find(path if holder.map_index < 0 else f"{path}/{holder.map_index}")
    return "gone" if found is None else str(found["state"] or "not started")


def _uses(asset: Mapping[str, Any], conn_id: str) -> bool:
    named = (asset["extra"] or {}).get("connections")
    return asset["name"].startswith(_PREFIX) and isinstance(named, list) and conn_id in named


def _asset(found: Mapping[str, Any]) -> SinkAsset:
    extra = found["extra"] or {}
    return SinkAsset(
        id=found["id"],
        sink=found["name"].removeprefix(_PREFIX),
        spec=_spec(extra.get("spec")),
        tasks=tuple(sorted((task["dag_id"], task["task_id"]) for task in found["producing_tasks"])),
    )


def _spec(text: Any) -> Mapping[str, Any] | None:
    """Return a spec, unless it holds templates: then it is only known when the task runs."""
    document = _document(text)
    if document is None or any(mark in str(text) for mark in ("{{", "{%")):
        return None
    with suppress(ConfigurationError):
        SinkSpec.parse(document)
        return document
    return None


def _stored(api: AirflowApi, asset_id: int) -> Iterator[Mapping[str, Any]]:
    return api.all(f"assets/{asset_id}/state-store", "asset_state_store")


def _states(api: AirflowApi, dag_id: str, task_id: str) -> tuple[str, ...]:
    answer = api.find(
        f"dags/{dag_id}/dagRuns/~/taskInstances",
        task_id=task_id,
        order_by="-run_after",
        limit=_INSTANCES,
    )
    return newest_states((answer or {}).get("task_instances", []))


def _document(value: Any) -> Mapping[str, Any] | None:
    """Return a JSON object that may stand as text."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None
