"""What the verbs of a sink's life do in Airflow, step by step, through its REST API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, assert_never

from airflow_provider_sinks.clients.airflow_api import AirflowApi, ApiAnswerError, quoted
from airflow_provider_sinks.clients.airflow_sinks import SinkAsset
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.lifecycle.steps import (
    AirflowStep,
    ClearTask,
    EndProcess,
    EndTask,
    Forget,
    KillApplication,
    PauseDag,
    StartRun,
    TaskKey,
    UnpauseDag,
)
from airflow_provider_sinks.drivers.running import RunningDrivers

_OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})


class AirflowSteps:
    """Carries out the steps that concern Airflow, or what it runs.

    :param drivers: ends drivers that are known by what runs, and not by a task.
    :param asset_of: returns the asset of a sink, if it has one.
    """

    def __init__(
        self, api: AirflowApi, drivers: RunningDrivers, asset_of: Callable[[str], SinkAsset | None]
    ) -> None:
        self._api = api
        self._drivers = drivers
        self._asset_of = asset_of

    def do(self, step: AirflowStep) -> None:
        """Carry out one step."""
        match step:
            case PauseDag(dag_id):
                self._set_paused(dag_id, is_paused=True)
            case UnpauseDag(dag_id):
                self._read_again(self._set_paused(dag_id, is_paused=False)["file_token"])
            case StartRun(dag_id, conf):
                filled = {"conf": dict(conf)} if conf else {}
                self._api.call("POST", f"dags/{quoted(dag_id)}/dagRuns", {"logical_date": None, **filled})
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
        path = f"dags/{quoted(dag_id)}"
        return self._api.call("PATCH", path, {"is_paused": is_paused}, update_mask="is_paused")

    def _read_again(self, file_token: str) -> None:
        """Have a DAG's file read again now, so that a schedule without a pause goes on.

        A run that ended while its DAG was paused counts for Airflow's scheduler as active until then.
        """
        with suppress(SinkError):  # asked for already, or not allowed: it is read again sooner or later
            self._api.call("PUT", f"parseDagFile/{quoted(file_token)}")

    def _end(self, task: TaskKey) -> None:
        mapped = f"/{task.map_index}" if task.map_index >= 0 else ""
        path = f"{_run(task)}/taskInstances/{quoted(task.task_id)}{mapped}"
        try:
            self._api.call("PATCH", path, {"new_state": "failed"})
        except ApiAnswerError as error:
            if not (error.is_conflict or error.is_missing):  # it has failed, or is gone, by itself
                raise
        self._end_run(task)

    def _end_run(self, task: TaskKey) -> None:
        """End a run of which no task is left.

        Airflow's scheduler takes its time over the runs of a paused DAG. One that it ends after the DAG was
        unpaused counts as a failure in a row, which pauses an endless DAG again.
        """
        states = [found["state"] for found in self._api.all(f"{_run(task)}/taskInstances", "task_instances")]
        if all(state in _OVER for state in states):
            with suppress(ApiAnswerError):  # over already
                self._api.call("PATCH", _run(task), {"state": "failed"}, update_mask="state")

    def _clear(self, task: TaskKey) -> None:
        which: object = [task.task_id, task.map_index] if task.map_index >= 0 else task.task_id
        body = {
            "dry_run": False,
            "dag_run_id": task.run_id,
            "task_ids": [which],
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._api.call("POST", f"dags/{quoted(task.dag_id)}/clearTaskInstances", body)

    def _forget(self, sink: str) -> None:
        self._delete(f"variables/{quoted(f'sinks.{sink}.witness')}")
        if (asset := self._asset_of(sink)) is not None:
            self._delete(asset.state_store)

    def _delete(self, path: str) -> None:
        try:
            self._api.call("DELETE", path)
        except ApiAnswerError as error:
            if not error.is_missing:
                raise


def _run(task: TaskKey) -> str:
    return f"dags/{quoted(task.dag_id)}/dagRuns/{quoted(task.run_id)}"
