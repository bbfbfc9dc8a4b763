"""The sinks that Airflow knows as assets, read by its REST API: by the one reader for all who ask.

Only what is or was named in a DAG of this Airflow is seen. A sink whose name is only known when its task runs
has no asset; nor does one that is mapped without ``outlets=sink_assets(...)``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sinks.clients.airflow_api import AirflowApi, quoted
from airflow_provider_sinks.core.alter.backup import Holder
from airflow_provider_sinks.core.alter.dependents import Dependent, NewestLaunch, newest_states
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

SINK_PREFIX = "sink:"
"""What the name of a sink's asset begins with."""
_NONE = 0
_INSTANCES = 100
"""So many of a task's newest instances are looked at."""


@dataclass(frozen=True)
class SinkAsset:
    """The asset of a sink.

    :param extra: what the DAG that names it says of it.
    :param tasks: the DAG and the id of each task that runs it.
    :param id: by which Airflow keeps things for it; 0 where it has no asset, and nothing is kept.
    """

    sink: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[tuple[str, str], ...] = ()
    id: int = _NONE

    @property
    def dag_ids(self) -> tuple[str, ...]:
        """The DAGs that name it."""
        return tuple(dict.fromkeys(dag_id for dag_id, _ in self.tasks))

    @property
    def connections(self) -> tuple[str, ...]:
        """The ids of the connections that it uses."""
        named = self.extra.get("connections")
        return tuple(named) if isinstance(named, list) else ()

    @property
    def data(self) -> Mapping[str, Any]:
        """The sink as its DAG names it, templates and all; empty where that cannot be read."""
        found = parsed(self.extra.get("spec"))
        return found if isinstance(found, Mapping) else {}

    @property
    def spec(self) -> SinkSpec | None:
        """The sink; ``None`` where it holds templates, and is only known when its task runs."""
        text = str(self.extra.get("spec"))
        if not self.data or any(mark in text for mark in ("{{", "{%")):
            return None
        with suppress(ConfigurationError):
            return SinkSpec.parse(self.data)
        return None

    @property
    def state_store(self) -> str:
        """The path below which Airflow keeps things for it."""
        return f"assets/{self.id}/state-store"


def sink_assets(api: AirflowApi, *, only_active: bool = True) -> dict[str, SinkAsset]:
    """Return the assets of all sinks, by name; paused DAGs count too.

    :param only_active: whether to leave out those that no DAG names any more.
    """
    asked = {"name_prefix_pattern": SINK_PREFIX, "order_by": "name", "only_active": only_active}
    found = (_asset(asset) for asset in api.all("assets", "assets", **asked) if _is_sink(asset))
    return {asset.sink: asset for asset in found}


def stored(api: AirflowApi, asset: SinkAsset) -> dict[str, Any]:
    """Return what is kept for a sink beside its asset, by key."""
    if asset.id == _NONE:
        return {}
    return {entry["key"]: parsed(entry["value"]) for entry in api.all(asset.state_store, "asset_state_store")}


def observe(api: AirflowApi, asset: SinkAsset) -> tuple[Dependent, Mapping[str, Any] | None]:
    """Return what a sink does now, and what Airflow remembers of its progress."""
    kept = stored(api, asset)
    status, memory = _document(kept.get("status")), _document(kept.get("witness"))
    dags = [api.find(f"dags/{quoted(dag_id)}") or {} for dag_id in asset.dag_ids]
    dependent = Dependent(
        sink=asset.sink,
        spec=asset.spec,
        follows=(status or {}).get("follow_connections", True) is not False,
        states=tuple(state for task in asset.tasks for state in _states(api, *task)),
        paused=bool(dags) and all(dag.get("is_paused", False) for dag in dags),
        newest=NewestLaunch.of(status, memory),
    )
    return dependent, memory


def task_state(api: AirflowApi, holder: Holder) -> str:
    """Return the state of a task; ``gone`` when Airflow does not know it any more."""
    run = f"dags/{quoted(holder.dag_id)}/dagRuns/{quoted(holder.run_id)}"
    path = f"{run}/taskInstances/{quoted(holder.task_id)}"
    found = api.find(path if holder.map_index < 0 else f"{path}/{holder.map_index}")
    return "gone" if found is None else str(found["state"] or "not started")


def parsed(value: Any) -> Any:
    """Return what a text says that may be JSON, or else the value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _is_sink(asset: Mapping[str, Any]) -> bool:
    return str(asset["name"]).startswith(SINK_PREFIX)  # "_" stands for any character in a pattern


def _asset(found: Mapping[str, Any]) -> SinkAsset:
    tasks = {(task["dag_id"], task["task_id"]) for task in found["producing_tasks"]}
    sink = str(found["name"]).removeprefix(SINK_PREFIX)
    return SinkAsset(sink, found.get("extra") or {}, tuple(sorted(tasks)), found["id"])


def _states(api: AirflowApi, dag_id: str, task_id: str) -> tuple[str, ...]:
    answer = api.find(
        f"dags/{quoted(dag_id)}/dagRuns/~/taskInstances",
        task_id=task_id,
        order_by="-run_after",
        limit=_INSTANCES,
    )
    return newest_states((answer or {}).get("task_instances", []))


def _document(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None
