"""All sinks that an Airflow knows, from its own metadata.

A sink is known by the DAG that names it, by what runs (a task, a driver) and by what is remembered of it (its
witness): one whose DAG is gone is found all the same, and what runs of it can be ended.

Everything goes through Airflow's REST API. A task has no other way; a command has the metadata database, but
would pass by the rights of users and Airflow's own audit log. Airflow itself marks its commands that write to
the database as deprecated, for the sake of ones that use the API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from airflow_provider_sinks.clients.airflow_api import AirflowApi, quoted
from airflow_provider_sinks.clients.airflow_sinks import (
    SINK_PREFIX,
    SinkAsset,
    parsed,
    sink_assets,
    stored,
)
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    UnavailableError,
    nearest,
)
from airflow_provider_sinks.core.lifecycle.dag_gone import Listed
from airflow_provider_sinks.core.lifecycle.sink_home import ACTIVE, SinkDag, SinkHome, SinkTask
from airflow_provider_sinks.core.lifecycle.state_history import (
    HistoryState,
    StateHistory,
    from_mappings,
    noted,
    to_mappings,
)
from airflow_provider_sinks.core.lifecycle.steps import AirflowStep, TaskKey
from airflow_provider_sinks.drivers.running import RunningDrivers
from airflow_provider_sinks.metadata.airflow_steps import AirflowSteps
from airflow_provider_sinks.metadata.dags import listed_as
from airflow_provider_sinks.metadata.memory import OWNER_VARIABLE, Memory
from airflow_provider_sinks.metadata.store import HISTORY_KEY, KEY, STATUS_KEY

_PAGE = 100
_MASKED = "***"
_OPERATORS = ["SubmitSinkJobOperator", "BrokenSubmitOperator", "SubmitReplayOperator"]
_WITNESS = re.compile(r"sinks\.(.+)\.witness")


class SinkHomes:
    """The sinks of one Airflow, as they are at the first question; make another to look again.

    :param api: the way to Airflow; the caller closes it.
    :param drivers: what runs on this machine, and on a cluster if one is asked.
    """

    def __init__(self, api: AirflowApi, drivers: RunningDrivers | None = None) -> None:
        self._api = api
        self._drivers = drivers or RunningDrivers()

    @property
    def names(self) -> list[str]:
        """The names of all sinks, sorted."""
        running = {name for task in self._running if (name := _sink_of(task))}
        known = {*self._named, *self._witnesses, *running, *self._drivers.sinks(self._owner)}
        return sorted(known)

    def all(self) -> list[SinkHome]:
        """Return everything about all sinks, by name."""
        dags = {dag["dag_id"]: dag for dag in self._api.all("dags", "dags", exclude_stale=False)}
        tasks = self._active(self._assets.values())
        return [self._home(self._asset(name), dags.get, tasks) for name in self.names]

    def one(self, sink: str) -> SinkHome:
        """Return everything about one sink.

        :raises ConfigurationError: Airflow knows of no such sink.
        """
        asset = self._asset(sink)
        return self._home(
            asset, lambda dag_id: self._api.find(f"dags/{quoted(dag_id)}"), self._active([asset])
        )

    def memory(self, sink: str) -> Memory:
        """Return what Airflow remembers of a sink, the newer of two copies.

        :raises UnavailableError: a copy cannot be read, so that "nothing is remembered" would be a guess.
        """
        asset = self._assets.get(sink)
        kept = stored(self._api, asset).get(KEY) if asset else None
        try:
            variable = self._variable(f"sinks.{sink}.witness")
        except UnavailableError:
            if not kept:
                raise
            variable = None
        memory = Memory.newest([copy for copy in (kept, variable) if copy])
        return memory if memory.owner else Memory(str(self._variable(OWNER_VARIABLE) or ""))

    def do(self, step: AirflowStep) -> None:
        """Carry out a step that concerns Airflow, or what it runs."""
        AirflowSteps(self._api, self._drivers, self._asset_of).do(step)

    def _asset_of(self, sink: str) -> SinkAsset | None:
        return self._assets.get(sink)

    def note(self, sink: str, state: HistoryState) -> None:
        """Write into a sink's history that a person paused or dropped it."""
        asset = self._asset(sink)
        if not asset.id:
            return
        history = noted(_history(stored(self._api, asset)), state)
        self._api.call("PUT", f"{asset.state_store}/{HISTORY_KEY}", {"value": to_mappings(history)})

    @cached_property
    def _named(self) -> dict[str, SinkAsset]:
        """The assets that a DAG names."""
        return sink_assets(self._api)

    @cached_property
    def _assets(self) -> dict[str, SinkAsset]:
        """Those, and the ones that are left of DAGs that are gone: they still hold the spec."""
        return {**sink_assets(self._api, only_active=False), **self._named}

    @cached_property
    def _running(self) -> list[dict[str, Any]]:
        """The tasks that run a sink and are not over, also those of a DAG that is gone."""
        path, asked = "dags/~/dagRuns/~/taskInstances", {"operator": _OPERATORS, "state": sorted(ACTIVE)}
        return list(self._api.all(path, "task_instances", **asked))

    @cached_property
    def _witnesses(self) -> dict[str, Mapping[str, Any]]:
        """What is remembered of each sink; empty where Airflow masks it."""
        variables = self._api.all("variables", "variables", variable_key_pattern="sinks.%.witness")
        found = ((_WITNESS.fullmatch(kept["key"]), parsed(kept["value"])) for kept in variables)
        return {match[1]: value if isinstance(value, dict) else {} for match, value in found if match}

    @cached_property
    def _owner(self) -> str:
        return str(self._variable(OWNER_VARIABLE) or "")

    def _asset(self, sink: str) -> SinkAsset:
        if sink in self._named:
            return self._named[sink]
        if sink in self.names:
            return self._assets.get(sink) or SinkAsset(sink)
        where = self._api.account.url
        hint = nearest(sink, self.names) or (
            "a sink is known once Airflow has read the DAG that runs it; a mapped task names its sinks by "
            "outlets=sink_assets(sinks)"
        )
        raise ConfigurationError(
            f'Airflow at {where} knows no sink "{sink}"', [Problem(sink, "is not known", hint)]
        )

    def _home(
        self, asset: SinkAsset, dag_of: Callable[[str], Mapping[str, Any] | None], tasks: list[dict[str, Any]]
    ) -> SinkHome:
        kept = stored(self._api, asset)
        found = [(dag_id, dag_of(dag_id)) for dag_id in asset.dag_ids]
        dags = [(dag_id, dag) for dag_id, dag in found if dag is not None and not self._is_gone(dag)]
        mine = [task for task in self._running if _sink_of(task) == asset.sink]
        running = {task.key: task for task in map(_task, mine)}
        running |= {task.key: task for named in tasks if (task := _task_of(named, asset)) is not None}
        return SinkHome(
            name=asset.sink,
            spec=asset.data,
            connections=asset.connections,
            dags=tuple(self._dag(asset.sink, dag_id, dag) for dag_id, dag in dags),
            tasks=tuple(running.values()),
            drivers=self._drivers.of(asset.sink, self._owner),
            status=kept.get(STATUS_KEY) or _last_known(self._witnesses.get(asset.sink, {})),
            history=_history(kept),
        )

    def _is_gone(self, dag: Mapping[str, Any]) -> bool:
        """Return whether no file names a DAG any more; one whose file cannot be read is not gone."""
        try:
            return listed_as(self._api, dag) is Listed.GONE
        except AuthenticationError:  # this user may not see errors of files
            return False

    def _dag(self, sink: str, dag_id: str, dag: Mapping[str, Any]) -> SinkDag:
        others = sorted(
            name for name, asset in self._assets.items() if dag_id in asset.dag_ids and name != sink
        )
        summary = dag.get("timetable_summary") or ""
        return SinkDag(dag_id, bool(dag["is_paused"]), "" if summary == "None" else summary, tuple(others))

    def _active(self, assets: Iterable[SinkAsset]) -> list[dict[str, Any]]:
        """Return the task instances of some sinks that are not over."""
        tasks = {task for asset in assets for task in asset.tasks}
        if not tasks:
            return []
        wanted = {
            "dag_ids": sorted({dag_id for dag_id, _ in tasks}),
            "task_ids": sorted({task_id for _, task_id in tasks}),
            "state": sorted(ACTIVE),
            "page_limit": _PAGE,
        }
        found: list[dict[str, Any]] = []
        while True:
            body = {**wanted, "page_offset": len(found)}
            page = self._api.call("POST", "dags/~/dagRuns/~/taskInstances/list", body)
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                return found

    def _variable(self, key: str) -> Any:
        found = self._api.find(f"variables/{quoted(key)}")
        value = parsed(found["value"]) if found else None
        if value == _MASKED or (isinstance(value, dict) and _MASKED in value.values()):
            raise UnavailableError(
                f'Variable "{key}" could not be read',
                "Airflow masks it, because its name sounds like that of a secret.",
                "Give the sink another name: words such as secret, token and password make Airflow hide it.",
            )
        return value


def _last_known(witness: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the witness tells of a sink whose status Airflow has deleted with the asset's DAG."""
    if "generation" not in witness:
        return {}
    counts = {name: witness.get(name) for name in ("launch", "generation", "epoch", "at")}
    return {**counts, "rows_total": witness.get("rows")}


def _sink_of(found: Mapping[str, Any]) -> str:
    """Return the sink that a task runs, by its rendered arguments; empty where they are not known yet."""
    fields = found.get("rendered_fields") or {}
    sink, name = parsed(fields.get("sink")), str(fields.get("name") or "")
    if isinstance(sink, dict) and sink.get("name"):
        return str(sink["name"])
    return (
        name.removeprefix(SINK_PREFIX) if name.startswith(SINK_PREFIX) else ""
    )  # Airflow cuts long arguments


def _task_of(found: Mapping[str, Any], asset: SinkAsset) -> SinkTask | None:
    """Return a task of this sink; a mapped one runs another sink if its rendered argument says so."""
    if (found["dag_id"], found["task_id"]) not in asset.tasks:
        return None
    sink = parsed((found.get("rendered_fields") or {}).get("sink"))
    if found["map_index"] >= 0 and isinstance(sink, dict) and sink.get("name") not in (None, asset.sink):
        return None
    return _task(found)


def _task(found: Mapping[str, Any]) -> SinkTask:
    key = TaskKey(found["dag_id"], found["dag_run_id"], found["task_id"], found["map_index"])
    tries_max = found["max_tries"] + 1
    ended_at = (found["end_date"] or "")[:19]
    return SinkTask(key, found["state"], found["try_number"], tries_max, f"{ended_at}Z" if ended_at else "")


def _history(stored: Mapping[str, Any]) -> StateHistory:
    return from_mappings(stored.get(HISTORY_KEY) or ())
