"""One try of a sink's task: it launches the sink, and again in place while its connections change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Protocol

from airflow_provider_sinks.arguments import accept_code
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import options_of, resolve
from airflow_provider_sinks.operators.submit.arguments import is_deferrable
from airflow_provider_sinks.operators.submit.client_launch import ClientLaunch, Submit
from airflow_provider_sinks.operators.submit.cluster_launch import ClusterLaunch
from airflow_provider_sinks.operators.submit.cluster_task import ClusterTask
from airflow_provider_sinks.operators.submit.connection_watch import ConnectionWatch, changed_meanwhile
from airflow_provider_sinks.operators.submit.launch import LaunchEnd, LaunchOrder, Listeners, SinkLaunch
from airflow_provider_sinks.operators.submit.retry_after_change import RetryAfterChange


class Asked(Protocol):
    """What the author of the task asked for, once templates are rendered."""

    accept: str | None
    deferrable: bool | None
    follow_connections: bool
    poll_interval: float
    spark_conn_id: str
    cancel_on_kill: bool
    execution_timeout: timedelta | None


class SinkRun:
    """The launches of one try.

    :param listeners: hear how each goes.
    :param submit: runs ``spark-submit``.
    :param retry: knows the connections for whose sake the sink is launched again.
    :param cluster: the task's part in cluster mode; ``None`` in client mode.
    :param asked: how the task is to run.
    :param stopping: whether the task was told to stop, maybe before there was anything to stop.
    """

    def __init__(
        self,
        spec: SinkSpec,
        listeners: Listeners,
        submit: Submit,
        *,
        retry: RetryAfterChange,
        cluster: ClusterTask | None,
        asked: Asked,
        stopping: Callable[[], bool],
    ) -> None:
        self._spec = spec
        self._listeners = listeners
        self._submit = submit
        self._retry = retry
        self._cluster = cluster
        self._asked = asked
        self._stopping = stopping
        self._launch: SinkLaunch | None = None

    def run(self, changed: tuple[str, ...] = ()) -> SinkStatus | None:
        """Launch the sink until it ends for another reason than a changed connection; return its last status.

        :param changed: the connections that ended the launch before.
        """
        while True:
            self._retry.begin(changed)
            end = self._launch_once()
            if not (changed := end.changed):
                return end.status

    def end(self) -> None:
        """End the launch that runs, within seconds; for a signal handler."""
        if self._launch is not None:
            self._launch.end()

    def end_politely(self) -> None:
        """End the launch that runs, between two epochs if it can."""
        if self._launch is not None:
            self._launch.restart(())

    def _launch_once(self) -> LaunchEnd:
        """Launch the sink, and raise what its end means unless it ended well."""
        connections = self._connections()
        self._launch = launch = self._new_launch(connections)
        if self._stopping():
            launch.end()
        if self._cluster and isinstance(launch, ClusterLaunch) and is_deferrable(self._asked.deferrable):
            return self._defer(self._cluster, launch, connections)
        with self._following(connections, launch):
            end = launch.run()
        if error := end.error(self._spec.name):
            raise self._retry.end(error, end.status)
        return end

    def _connections(self) -> ResolvedConnections:
        try:
            return resolve(self._spec)
        except ConfigurationError as found:
            ended = self._retry.end(found, None)
            self._show_unlaunched(ended)
            raise ended from None

    def _new_launch(self, connections: ResolvedConnections) -> SinkLaunch:
        if self._cluster is None:
            return ClientLaunch(self._order(), self._submit, self._listeners)
        followed = connections.visible_digests() if self._asked.follow_connections else None
        return self._cluster.launch(self._order, self._submit, followed)

    def _order(self) -> LaunchOrder:
        """Count the launch, and read its connections once more.

        A launch that is counted after a change gets what changed, which is how others know that a sink has
        followed.
        """
        memory = self._listeners.memory.begin_launch()
        for conn_id in self._retry.changed:
            self._listeners.log.info("launch %d: connection %s changed", memory.launch, conn_id)
        return LaunchOrder(self._spec, resolve(self._spec), memory, accept_code(self._asked.accept))

    def _defer(
        self, cluster: ClusterTask, launch: ClusterLaunch, connections: ResolvedConnections
    ) -> LaunchEnd:
        """Leave the worker while the driver runs, unless a connection changed during the submit."""
        deferral = cluster.wait_in_triggerer(launch, self._asked)
        read = partial(options_of, self._spec)
        if self._asked.follow_connections and (changed := changed_meanwhile(connections, read)):
            launch.restart(changed)
            return LaunchEnd(0, changed=changed)
        raise deferral

    def _following(
        self, connections: ResolvedConnections, launch: SinkLaunch
    ) -> AbstractContextManager[object]:
        """Return what follows the connections of a launch while it runs."""
        if not self._asked.follow_connections:
            return nullcontext()
        read = partial(options_of, self._spec)
        log = self._listeners.log
        return ConnectionWatch(connections, read, self._asked.poll_interval, launch.restart, log)

    def _show_unlaunched(self, error: SinkError) -> None:
        """Show what ended a try before it had a driver that could tell."""
        memory = self._listeners.memory
        memory.show(SinkStatus(self._spec.name, memory.newest_launch()).ended(error))
