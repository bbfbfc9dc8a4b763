"""The waiting half of a deferred ``SubmitSinkJobOperator``: it follows a driver on YARN and holds no worker.

It rings once: when the driver is over, or is to be started again because connections changed. A worker does
what is to be done. When the DAG is gone for good no worker would, because Airflow schedules nothing of it:
then the driver is ended from here, and the task with it.

A restarted triggerer begins again where it was: the driver is an application of the cluster and knows nothing
of triggerers.

Nothing blocks the triggerer's event loop: each look runs in a thread of a small pool, and a trigger has at
most one under way. Nothing here is secret: connections are named, and read where they are needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TaskSkippedEvent, TriggerEvent

from airflow_provider_sinks.core.lifecycle.dag_gone import Absence

if TYPE_CHECKING:
    from airflow_provider_sinks.drivers.on_yarn import ClusterDriver
    from airflow_provider_sinks.operators.submit.status_watch import StatusWatch
    from airflow_provider_sinks.triggers.followed import FollowedConnections

_LOOKS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sinks-driver")
_ENDS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sinks-end")
"""Apart, so that looks at a manager that does not answer hold up nobody who ends a driver."""

_POLITE_SECONDS = 5.0
_DEAD_SECONDS = 10.0
_FENCE_SECONDS = 10.0
"""Together below the 30 seconds that a triggerer gives ``on_kill``."""


_STORED = (
    "application_id",
    "spark_conn_id",
    "status_uri",
    "sink",
    "poll_interval",
    "cancel_on_kill",
    "follow_connections",
    "launched",
)


class SinkDriverTrigger(BaseTrigger):
    """Wait for the end of a driver.

    :param application_id: of the driver.
    :param spark_conn_id: the Airflow connection that names the resource manager.
    :param status_uri: where the driver's status stands.
    :param sink: the sink, as plain data without templates and without secrets.
    :param poll_interval: how often to look, in seconds.
    :param cancel_on_kill: end the driver when a person ends the task.
    :param follow_connections: ring when a connection of the sink changes, too.
    :param launched: by connection id, what tells the options apart that the driver got
        (``visible_digests``): so a change is noticed that came before the first look, or while no triggerer
        ran.
    """

    def __init__(
        self,
        *,
        application_id: str,
        spark_conn_id: str,
        status_uri: str,
        sink: dict[str, Any],
        poll_interval: float,
        cancel_on_kill: bool = True,
        follow_connections: bool = True,
        launched: dict[str, str] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.application_id = application_id
        self.spark_conn_id = spark_conn_id
        self.status_uri = status_uri
        self.sink = sink
        self.poll_interval = poll_interval
        self.cancel_on_kill = cancel_on_kill
        self.follow_connections = follow_connections
        self.launched = launched or {}
        self._absence = Absence()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, which Airflow stores while the task waits."""
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in _STORED}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until there is something to do, and ring. Called by the triggerer, anew after each restart.

        Threads get a copy of the context: by it Airflow knows which task's log a line belongs to.
        """
        changed: tuple[str, ...] = ()
        complained = ""
        while True:
            try:
                over, changed, gone = await asyncio.wrap_future(_LOOKS.submit(copy_context().run, self._look))
                if gone and not over:
                    self.log.warning("the DAG is gone for good: ending driver %s", self.application_id)
                    await asyncio.wrap_future(_ENDS.submit(copy_context().run, self._end))
                    yield TaskSkippedEvent()
                    return
                if over or changed:
                    break
                complained = ""
            except Exception as error:  # noqa: BLE001  what cannot be asked now is asked again; the driver goes on
                if complained != (complained := f"{type(error).__name__}: {error}"):
                    self.log.warning("driver %s cannot be seen: %s", self.application_id, complained)
            await asyncio.sleep(self.poll_interval)
        ids = {name: getattr(self, name) for name in ("application_id", "status_uri")}
        found = () if over else changed
        unlike = [conn_id for conn_id in found if conn_id in self._connections.unlike]
        yield TriggerEvent({"sink": self.sink["name"], **ids, "changed": list(found), "unlike": unlike})

    async def on_kill(self) -> None:
        """End the driver. Called when a person clears the task, or marks it.

        By its id and never by its sink: a cleared task may have started the next driver by now.
        """
        if self.cancel_on_kill:
            await asyncio.wrap_future(_ENDS.submit(copy_context().run, self._end))

    def _look(self) -> tuple[bool, tuple[str, ...], bool]:
        """Return whether the driver is over, the connections that changed, and whether the DAG is gone."""
        from airflow_provider_sinks.core.launch.yarn import Fate, fate

        over = fate(self._driver.application()) is not Fate.ALIVE
        self._watch.look()
        changed = self._connections.changed() if self.follow_connections else ()
        gone_now = self._dag_is_gone_now(about_to_ring=bool(changed))
        self._absence = self._absence.seen(gone=gone_now, at_seconds=time.monotonic())
        return over, () if gone_now else changed, self._absence.is_final(time.monotonic())

    def _dag_is_gone_now(self, *, about_to_ring: bool) -> bool:
        """Return whether Airflow knows no file of the DAG.

        While it does not, a change of a connection must not ring: no worker would come, and nobody would be
        left to mind the driver.
        """
        from airflow_provider_sinks.core.lifecycle.dag_gone import File, is_gone
        from airflow_provider_sinks.triggers.listed_dags import listed_lately

        if self.task_instance is None:
            return False
        return is_gone(listed_lately(self.task_instance.dag_id, now=about_to_ring), File.UNSEEN)

    def _end(self) -> None:
        from airflow_provider_sinks.arguments import parse
        from airflow_provider_sinks.drivers.on_yarn import end_transactions

        driver = self._driver
        driver.end(_POLITE_SECONDS, _DEAD_SECONDS)
        self.log.info("driver %s was ended", self.application_id)
        end_transactions(parse(self.sink), driver.status(), _FENCE_SECONDS, self.log)

    @cached_property
    def _driver(self) -> ClusterDriver:
        """The driver. Its connection is read once, because a triggerer reads few connections a second."""
        from airflow_provider_sinks.clients.launch_store import LaunchStore
        from airflow_provider_sinks.drivers.on_yarn import ClusterDriver
        from airflow_provider_sinks.triggers.shared_client import shared_client

        client = shared_client(self.spark_conn_id)
        return ClusterDriver(client, self.application_id, LaunchStore(self.status_uri), self.log)

    @cached_property
    def _connections(self) -> FollowedConnections:
        """The connections of the sink."""
        from airflow_provider_sinks.arguments import parse
        from airflow_provider_sinks.triggers.followed import FollowedConnections

        return FollowedConnections(parse(self.sink), self.launched)

    @cached_property
    def _watch(self) -> StatusWatch:
        """Turns the status into lines of the log and into the witness.

        A trigger may write Variables, but not the store of an asset: one of the two copies of the witness.
        """
        from airflow_provider_sinks.metadata.memory import SinkMemory
        from airflow_provider_sinks.operators.submit.status_watch import StatusWatch

        memory = SinkMemory(self.sink["name"], None, self.log)
        return StatusWatch(self._driver.status_text, memory, self.log, is_one_of_many=True)
