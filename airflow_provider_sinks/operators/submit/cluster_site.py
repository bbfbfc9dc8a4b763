"""Where a sink's driver runs on a cluster, and what its task notes down of it for later tries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk.execution_time.context import NEVER_EXPIRE

from airflow_provider_sinks.clients.launch_store import LaunchStore
from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.launch.reconnect import NotedLaunch
from airflow_provider_sinks.core.launch.yarn import Application, owner_tag, sink_tag
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.on_yarn import ClusterDriver

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import Logger

NOTE_KEY = "sink_driver"


class TaskStore(Protocol):
    """The part of Airflow's task state store that is used here."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value."""

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        """Write a value."""


def noted(store: TaskStore) -> NotedLaunch | None:
    """Return what an earlier try of a task noted down of its driver.

    :param store: of the task.
    """
    found = store.get(NOTE_KEY)
    return NotedLaunch.from_mapping(found) if found else None


def clears(context: Context) -> int:
    """Return how often a task was cleared.

    Clearing a task that does not run raises ``max_tries``, and a retry does not. One that runs is ended by a
    clear: its driver was asked to stop, and that is how the next try knows.
    """
    return int(context["ti"].max_tries)


@dataclass(frozen=True)
class ClusterSite:
    """Where a sink's driver runs, and what the task may know of it.

    :param client: the resource manager.
    :param store: the task's own state store.
    :param clears: how often the task was cleared.
    :param durable: whether a driver that runs may be gone on with.
    :param status_root: folder or URI below which each launch has its status.
    :param poll_seconds: how often the manager is asked whether the driver lives.
    """

    client: YarnClient
    store: TaskStore
    clears: int
    durable: bool
    status_root: str
    poll_seconds: float

    def note(self) -> NotedLaunch | None:
        """Return what an earlier try of the task noted down; ``None`` too for what it cannot have written.

        Whoever may trigger the DAG may as a rule write into the store, and would have this worker read, and
        make folders, at any place that it reaches.
        """
        found = noted(self.store)
        return found if found is not None and self._is_below(found.status_uri) else None

    def _is_below(self, status_uri: str) -> bool:
        below = status_uri.removeprefix(f"{self.status_root}/")
        return below != status_uri and not {"", ".", ".."}.intersection(below.split("/"))

    def keep(self, note: NotedLaunch) -> None:
        """Note it down for later tries; a sink may run for longer than Airflow keeps things."""
        self.store.set(NOTE_KEY, note.to_mapping(), retention=NEVER_EXPIRE)

    def running(self, sink: str, owner: str) -> list[Application]:
        """Return the drivers of a sink that are not over, of this Airflow alone.

        :raises UnavailableError: the manager cannot be asked.
        """
        mine = owner_tag(owner, sink)
        return [app for app in self.client.alive(sink_tag(sink)) if mine in app.tags]

    def driver(self, app_id: str, status_uri: str, log: Logger) -> ClusterDriver:
        """Return a driver, by its id and the folder of its status."""
        return ClusterDriver(self.client, app_id, LaunchStore(status_uri), log)


def site_of(
    context: Context,
    spec: SinkSpec,
    client: YarnClient,
    *,
    status_uri: str | None,
    durable: bool,
    poll_seconds: float,
) -> ClusterSite:
    """Return the site of a task's drivers.

    :param status_uri: as the user gave it, or ``None`` for a folder beside the checkpoint.
    :raises ConfigurationError: the sink has no checkpoint that a cluster could use.
    """
    return ClusterSite(
        client=client,
        store=context["task_state_store"],
        clears=clears(context),
        durable=durable,
        status_root=_status_root(spec, status_uri),
        poll_seconds=poll_seconds,
    )


def _status_root(spec: SinkSpec, status_uri: str | None) -> str:
    """Return where the launches of sinks have their status."""
    root = status_uri or spec.checkpoint
    if spec.checkpoint is None:
        problem = Problem(
            "checkpoint", "is missing: a driver on a cluster cannot use a folder of this worker"
        )
        raise ConfigurationError(
            f'sink "{spec.name}" has no place for its checkpoint',
            [problem],
            "Name a folder or URI that every node reaches, such as hdfs:///sinks or s3a://bucket/sinks.",
        )
    return str(root).rstrip("/")
