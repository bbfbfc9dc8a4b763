"""All sinks that an Airflow knows, from its own metadata, and what the verbs of their life do there.

A sink is known by the DAG that names it, by what runs (a task, a driver) and by what is remembered of it (its
witness): one whose DAG is gone is found all the same, and what runs of it can be ended.

Everything goes through Airflow's REST API. A task has no other way; a command has the metadata database, but
would pass by the rights of users and Airflow's own audit log. Airflow itself marks its commands that write to
the database as deprecated, for the sake of ones that use the API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never
from urllib.parse import quote

from airflow_provider_sinks.clients.airflow_api import AirflowApi, ApiAnswerError
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
    nearest,
)
from airflow_provider_sinks.core.lifecycle.dag_gone import Listed
from airflow_provider_sinks.core.lifecycle.sink_home import ACTIVE, SinkDag, SinkHome, SinkTask
from airflow_provider_sinks.core.lifecycle.state_history import (
    History,
    LifeState,
    from_mappings,
    noted,
    to_mappings,
)
from airflow_provider_sinks.core.lifecycle.steps import (
    AirflowStep,
    ClearTask,
    EndProcess,
    EndTask,
    Forget,
    KillApplication,
    PauseDag,
    StartRun,
    TaskPlace,
    UnpauseDag,
)
from airflow_provider_sinks.drivers.running import RunningDrivers
from airflow_provider_sinks.metadata.dags import listed_as
from airflow_provider_sinks.metadata.memory import HISTORY_KEY, KEY, OWNER_VARIABLE, STATUS_KEY, Memory

_PREFIX = "sink:"
_PAGE = 100
_MASKED = "***"
_NO_ASSET = 0
_OPERATORS = ["SubmitSinkJobOperator", "BrokenSubmitOperator"]
_WITNESS = re.compile(r"sinks\.(.+)\.witness")
_OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})


@dataclass(frozen=True)
class _Asset:
    """The asset of one sink."""

    id: int
    sink: str
    extra: Mapping[str, Any]
    tasks: tuple[tuple[str, str], ...] = ()

    @property
    def dag_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dag_id for dag_id, _ in self.tasks))


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
            asset, lambda dag_id: self._api.find(f"dags/{_quoted(dag_id)}"), self._active([asset])
        )

    def memory(self, sink: str) -> Memory:
        """Return what Airflow remembers of a sink, the newer of two copies.

        :raises UnavailableError: a copy cannot be read, so that "nothing is remembered" would be a guess.
        """
        asset = self._assets.get(sink)
        stored = self._stored(asset).get(KEY) if asset else None
        try:
            variable = self._variable(f"sinks.{sink}.witness")
        except UnavailableError:
            if not stored:
                raise
            variable = None
        memory = Memory.newest([copy for copy in (stored, variable) if copy])
        return memory if memory.owner else Memory(str(self._variable(OWNER_VARIABLE) or ""))

    def do(self, step: AirflowStep) -> None:
        """Carry out a step that concerns Airflow, or what it runs."""
        match step:
            case PauseDag(dag_id):
                self._set_paused(dag_id, is_paused=True)
            case UnpauseDag(dag_id):
                self._read_again(self._set_paused(dag_id, is_paused=False)["file_token"])
            case StartRun(dag_id):
                self._api.call("POST", f"dags/{_quoted(dag_id)}/dagRuns", {"logical_date": None})
            case EndTask(task):
                self._end(task)
            case ClearTask(task):
                self._clear(task)
            case EndProcess() | KillApplication():
                self._drivers.end(step)
            case Forget(sink):
                self._forget(sink)
            case _:
                assert_never(step)

    def _set_paused(self, dag_id: str, *, is_paused: bool) -> Any:
        path = f"dags/{_quoted(dag_id)}"
        return self._api.call("PATCH", path, {"is_paused": is_paused}, update_mask="is_paused")

    def _read_again(self, file_token: str) -> None:
        """Have a DAG's file read again now, so that a schedule without a pause goes on.

        A run that ended while its DAG was paused counts for Airflow's scheduler as active until then.
        """
        with suppress(SinkError):  # asked for already, or not allowed: it is read again sooner or later
            self._api.call("PUT", f"parseDagFile/{_quoted(file_token)}")

    def note(self, sink: str, state: LifeState) -> None:
        """Write into a sink's history that a person paused or dropped it."""
        asset = self._asset(sink)
        if asset.id == _NO_ASSET:
            return
        history = noted(_history(self._stored(asset)), state)
        path = f"assets/{asset.id}/state-store/{HISTORY_KEY}"
        self._api.call("PUT", path, {"value": to_mappings(history)})

    @cached_property
    def _named(self) -> dict[str, _Asset]:
        """The assets that a DAG names."""
        return self._assets_of(only_active=True)

    @cached_property
    def _assets(self) -> dict[str, _Asset]:
        """Those, and the ones that are left of DAGs that are gone: they still hold the spec."""
        return {**self._assets_of(only_active=False), **self._named}

    def _assets_of(self, *, only_active: bool) -> dict[str, _Asset]:
        # "_" is a wildcard in the pattern, and the pattern may stand anywhere in a name.
        found = self._api.all("assets", "assets", name_pattern=_PREFIX, only_active=only_active)
        sinks = [asset for asset in found if asset["name"].startswith(_PREFIX)]
        return {asset.sink: asset for asset in map(_asset, sinks)}

    @cached_property
    def _running(self) -> list[dict[str, Any]]:
        """The tasks that run a sink and are not over, also those of a DAG that is gone."""
        path, asked = "dags/~/dagRuns/~/taskInstances", {"operator": _OPERATORS, "state": sorted(ACTIVE)}
        return list(self._api.all(path, "task_instances", **asked))

    @cached_property
    def _witnesses(self) -> dict[str, Mapping[str, Any]]:
        """What is remembered of each sink; empty where Airflow masks it."""
        variables = self._api.all("variables", "variables", variable_key_pattern="sinks.%.witness")
        found = ((_WITNESS.fullmatch(kept["key"]), _parsed(kept["value"])) for kept in variables)
        return {match[1]: value if isinstance(value, dict) else {} for match, value in found if match}

    @cached_property
    def _owner(self) -> str:
        return str(self._variable(OWNER_VARIABLE) or "")

    def _asset(self, sink: str) -> _Asset:
        if sink in self._named:
            return self._named[sink]
        if sink in self.names:
            return self._assets.get(sink) or _Asset(_NO_ASSET, sink, {})
        where = self._api.account.url
        hint = nearest(sink, self.names) or (
            "a sink is known once Airflow has read the DAG that runs it; a mapped task names its sinks by "
            "outlets=sink_assets(sinks)"
        )
        raise ConfigurationError(
            f'Airflow at {where} knows no sink "{sink}"', [Problem(sink, "is not known", hint)]
        )

    def _home(
        self, asset: _Asset, dag_of: Callable[[str], Mapping[str, Any] | None], tasks: list[dict[str, Any]]
    ) -> SinkHome:
        stored = self._stored(asset)
        found = [(dag_id, dag_of(dag_id)) for dag_id in asset.dag_ids]
        dags = [(dag_id, dag) for dag_id, dag in found if dag is not None and not self._is_gone(dag)]
        mine = [task for task in self._running if _sink_of(task) == asset.sink]
        running = {task.place: task for task in map(_task, mine)}
        running |= {task.place: task for named in tasks if (task := _task_of(named, asset)) is not None}
        return SinkHome(
            name=asset.sink,
            spec=_spec(asset),
            connections=tuple(asset.extra.get("connections") or ()),
            dags=tuple(self._dag(asset.sink, dag_id, dag) for dag_id, dag in dags),
            tasks=tuple(running.values()),
            drivers=self._drivers.of(asset.sink, self._owner),
            status=stored.get(STATUS_KEY) or _last_known(self._witnesses.get(asset.sink, {})),
            history=_history(stored),
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

    def _active(self, assets: Iterable[_Asset]) -> list[dict[str, Any]]:
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

    def _stored(self, asset: _Asset) -> dict[str, Any]:
        if asset.id == _NO_ASSET:
            return {}
        path = f"assets/{asset.id}/state-store"
        return {entry["key"]: _parsed(entry["value"]) for entry in self._api.all(path, "asset_state_store")}

    def _variable(self, key: str) -> Any:
        found = self._api.find(f"variables/{_quoted(key)}")
        value = _parsed(found["value"]) if found else None
        if value == _MASKED or (isinstance(value, dict) and _MASKED in value.values()):
            raise UnavailableError(
                f'Variable "{key}" could not be read',
                "Airflow masks it, because its name sounds like that of a secret.",
                "Give the sink another name: words such as secret, token and password make Airflow hide it.",
            )
        return value

    def _end(self, task: TaskPlace) -> None:
        mapped = f"/{task.map_index}" if task.map_index >= 0 else ""
        path = f"{_run(task)}/taskInstances/{_quoted(task.task_id)}{mapped}"
        try:
            self._api.call("PATCH", path, {"new_state": "failed"})
        except ApiAnswerError as error:
            if not (error.is_conflict or error.is_missing):  # it has failed, or is gone, by itself
                raise
        self._end_run(task)

    def _end_run(self, task: TaskPlace) -> None:
        """End a run of which no task is left.

        Airflow's scheduler takes its time over the runs of a paused DAG. One that it ends after the DAG was
        unpaused counts as a failure in a row, which pauses an endless DAG again.
        """
        states = [found["state"] for found in self._api.all(f"{_run(task)}/taskInstances", "task_instances")]
        if all(state in _OVER for state in states):
            with suppress(ApiAnswerError):  # over already
                self._api.call("PATCH", _run(task), {"state": "failed"}, update_mask="state")

    def _clear(self, task: TaskPlace) -> None:
        which: object = [task.task_id, task.map_index] if task.map_index >= 0 else task.task_id
        body = {
            "dry_run": False,
            "dag_run_id": task.run_id,
            "task_ids": [which],
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._api.call("POST", f"dags/{_quoted(task.dag_id)}/clearTaskInstances", body)

    def _forget(self, sink: str) -> None:
        self._delete(f"variables/{_quoted(f'sinks.{sink}.witness')}")
        if sink in self._assets:
            self._delete(f"assets/{self._assets[sink].id}/state-store")

    def _delete(self, path: str) -> None:
        try:
            self._api.call("DELETE", path)
        except ApiAnswerError as error:
            if not error.is_missing:
                raise


def _asset(found: Mapping[str, Any]) -> _Asset:
    tasks = tuple((task["dag_id"], task["task_id"]) for task in found["producing_tasks"])
    return _Asset(found["id"], found["name"].removeprefix(_PREFIX), found.get("extra") or {}, tasks)


def _spec(asset: _Asset) -> Mapping[str, Any]:
    spec = _parsed(asset.extra.get("spec") or "{}")
    return spec if isinstance(spec, dict) else {}


def _last_known(witness: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the witness tells of a sink whose status Airflow has deleted with the asset's DAG."""
    if "generation" not in witness:
        return {}
    counts = {name: witness.get(name) for name in ("launch", "generation", "epoch", "at")}
    return {**counts, "rows_total": witness.get("rows")}


def _sink_of(found: Mapping[str, Any]) -> str:
    """Return the sink that a task runs, by its rendered arguments; empty where they are not known yet."""
    fields = found.get("rendered_fields") or {}
    sink, name = _parsed(fields.get("sink")), str(fields.get("name") or "")
    if isinstance(sink, dict) and sink.get("name"):
        return str(sink["name"])
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""  # Airflow cuts long arguments


def _task_of(found: Mapping[str, Any], asset: _Asset) -> SinkTask | None:
    """Return a task of this sink; a mapped one runs another sink if its rendered argument says so."""
    if (found["dag_id"], found["task_id"]) not in asset.tasks:
        return None
    sink = _parsed((found.get("rendered_fields") or {}).get("sink"))
    if found["map_index"] >= 0 and isinstance(sink, dict) and sink.get("name") not in (None, asset.sink):
        return None
    return _task(found)


def _task(found: Mapping[str, Any]) -> SinkTask:
    place = TaskPlace(found["dag_id"], found["dag_run_id"], found["task_id"], found["map_index"])
    tries_max = found["max_tries"] + 1
    ended_at = (found["end_date"] or "")[:19]
    return SinkTask(place, found["state"], found["try_number"], tries_max, f"{ended_at}Z" if ended_at else "")


def _history(stored: Mapping[str, Any]) -> History:
    return from_mappings(stored.get(HISTORY_KEY) or ())


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _run(task: TaskPlace) -> str:
    return f"dags/{_quoted(task.dag_id)}/dagRuns/{_quoted(task.run_id)}"


def _quoted(part: str) -> str:
    return quote(part, safe="")
