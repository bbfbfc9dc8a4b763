"""Looks for the DAG of a task: what Airflow says of it, and what this worker sees of its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.clients.airflow_api import quoted
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.lifecycle.dag_gone import File, Listed, is_gone
from airflow_provider_sinks.hooks.airflow_account import airflow_api

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_sinks.clients.airflow_api import AirflowApi


def dag_is_gone(context: Context) -> bool:
    """Look once for the DAG of a task; at its file only where Airflow cannot be asked."""
    said = listed(context["ti"].dag_id)
    return is_gone(said, file_of(context) if said is Listed.UNKNOWN else File.UNSEEN)


def listed(dag_id: str) -> Listed:
    """Ask Airflow's REST API, where there is the connection to it that other operators take by default."""
    try:
        with airflow_api() as api:
            found = api.find(f"dags/{quoted(dag_id)}")
            return listed_as(api, found) if found else Listed.UNKNOWN  # also for a user who may not see it
    except SinkError:
        return Listed.UNKNOWN


def listed_as(api: AirflowApi, dag: Mapping[str, Any]) -> Listed:
    """Return what Airflow says of a DAG that it knows.

    One whose file was removed in the middle of a reading stays marked as broken for ever: what counts is
    whether Airflow still tells of an error in that file, which it does as long as the file is there.

    :param dag: as the API returns it.
    :raises SinkError: Airflow could not be asked.
    """
    if not dag["is_stale"]:
        return Listed.LISTED
    if not dag["has_import_errors"]:
        return Listed.GONE
    place = {"filename": dag["relative_fileloc"], "bundle_name": dag["bundle_name"]}
    errors = api.call("GET", "importErrors", limit=1, **place)["total_entries"]
    return Listed.BROKEN if errors else Listed.GONE


def file_of(context: Context) -> File:
    """Look where Airflow last read the DAG from, in the bundle that this task runs from.

    The checkout of one version never changes, and a folder without a file may be one that is not mounted.
    """
    task = context["ti"]
    bundle, named = getattr(task, "bundle_instance", None), task.get_dag(task.dag_id)
    if bundle is None or bundle.version or bundle.name != named.bundle_name or not named.relative_fileloc:
        return File.UNSEEN
    return file_seen(Path(bundle.path), named.relative_fileloc)


def file_seen(root: Path, relative: str) -> File:
    """Look for a file below a folder; a DAG in a zip file is as far there as the zip file is."""
    path = root / relative
    try:
        if path.exists() or any(part.is_file() for part in path.parents):
            return File.THERE
        return File.MISSING if any(part.is_file() for part in root.iterdir()) else File.UNSEEN
    except OSError:
        return File.UNSEEN
