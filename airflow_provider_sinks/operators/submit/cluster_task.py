"""A task whose driver is on YARN: its launch, its wait in the triggerer, and how it comes back from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol

from airflow.sdk.exceptions import TaskDeferred

from airflow_provider_sinks.arguments import plain
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.launch.reconnect import GoOn, LaunchAnew, NotedLaunch, first_of, own
from airflow_provider_sinks.core.launch.yarn import Application
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.on_yarn import end_transactions
from airflow_provider_sinks.hooks.connections import resolve
from airflow_provider_sinks.operators.submit.client_launch import Submit
from airflow_provider_sinks.operators.submit.cluster_end import launch_end, shown_end
from airflow_provider_sinks.operators.submit.cluster_launch import ClusterLaunch, is_stopping
from airflow_provider_sinks.operators.submit.cluster_site import ClusterSite
from airflow_provider_sinks.operators.submit.launch import LaunchEnd, LaunchOrder, Listeners, stopped
from airflow_provider_sinks.operators.submit.status_watch import StatusWatch
from airflow_provider_sinks.triggers.sink_driver import SinkDriverTrigger

_POLITE_SECONDS = 10.0
_RESTART_POLITE_SECONDS = 30.0
_FENCE_SECONDS = 10.0


class Waiting(Protocol):
    """What the operator says about the wait."""

    spark_conn_id: str
    cancel_on_kill: bool
    follow_connections: bool
    execution_timeout: timedelta | None


class ClusterTask:
    """One try of a task.

    :param spec: the sink.
    :param listeners: hear how it goes.
    :param site: where its driver runs.
    """

    def __init__(self, spec: SinkSpec, listeners: Listeners, site: ClusterSite) -> None:
        self._spec = spec
        self._listeners = listeners
        self._site = site

    def launch(
        self, order: Callable[[], LaunchOrder], submit: Submit, connections: Mapping[str, str] | None = None
    ) -> ClusterLaunch:
        """Return the launch of this try, which may turn out to be one that runs already.

        :param connections: as for :class:`ClusterLaunch`.
        """
        owner = self._listeners.memory.recall().owner
        return ClusterLaunch(
            self._spec,
            order,
            submit,
            listeners=self._listeners,
            site=self._site,
            owner=owner,
            connections=connections,
        )

    def wait_in_triggerer(self, launch: ClusterLaunch, task: Waiting) -> BaseException:
        """Find or submit the driver, and return what makes Airflow wait for it without a worker.

        When the task's ``execution_timeout`` is over, Airflow comes back and the driver is ended
        (:meth:`give_up`).
        """
        driver = launch.begin()
        if driver is None:
            return stopped(self._spec.name)
        trigger = SinkDriverTrigger(
            application_id=driver.id,
            spark_conn_id=task.spark_conn_id,
            status_uri=driver.store.uri,
            sink=plain(self._spec),
            poll_interval=self._site.poll_seconds,
            cancel_on_kill=task.cancel_on_kill,
            follow_connections=task.follow_connections,
            launched=dict(note.connections) if (note := self._site.note()) else {},
        )
        return TaskDeferred(trigger=trigger, method_name="execute_complete", timeout=task.execution_timeout)

    def is_false_alarm(self, event: Mapping[str, Any]) -> bool:
        """Return whether the driver has the options that stand, although the trigger says that they changed.

        A triggerer may read a connection from elsewhere, such as a variable of its own environment. What it
        reads is then not compared any more with what the driver got, or it would ring for ever.

        :param event: of the trigger.
        """
        unlike, note = set(event.get("unlike", ())), self._site.note()
        if note is None or not unlike or set(event["changed"]) - unlike:
            return False
        try:
            stands = resolve(self._spec).visible_digests()
        except ConfigurationError:  # one that cannot be used any more has changed
            return False
        if note.differs_from(stands):
            return False
        names = ", ".join(sorted(unlike))
        self._listeners.log.warning("the triggerer does not read connection %s as this worker does", names)
        kept = {conn_id: digest for conn_id, digest in note.connections.items() if conn_id not in unlike}
        self._site.keep(replace(note, connections=kept))
        return True

    def settle(self, event: dict[str, Any]) -> LaunchEnd:
        """Return how the driver ended, and remember what it did.

        :param event: of the trigger: the driver is over, or is to be ended because connections changed.
        """
        listeners, changed = self._listeners, tuple(event["changed"])
        driver = self._site.driver(event["application_id"], event["status_uri"], listeners.log)
        if changed:
            driver.end(_RESTART_POLITE_SECONDS)
        application = driver.application()
        watch = StatusWatch(driver.status_text, listeners.memory, listeners.log, listeners.tell)
        status = watch.finish()
        note = self._site.note()
        number = note.launch if note else 0
        found = launch_end(driver, application, status, number, listeners.memory)
        return shown_end(replace(found, changed=changed), self._spec.name, number, listeners.memory)

    def is_under_way(self) -> bool:
        """Return whether a driver of an earlier try runs that this one may go on with.

        For a task that must not start another: one of its own that it may not go on with is ended.
        """
        site, note = self._site, self._site.note()
        running = self._running()
        mine = own(note, running)
        if note is None or mine is None:
            return False
        stopping = is_stopping(note, self._listeners.log)
        first = first_of(note, site.clears, running, durable=True, stopping=stopping)
        if isinstance(first, LaunchAnew):
            self._end(mine.id, note, first.why)
        return isinstance(first, GoOn)

    def give_up(self) -> None:
        """End the driver that this task noted down, because its time is over; no other application."""
        note = self._site.note()
        mine = own(note, self._running()) if note else None
        if note is not None and mine is not None:
            self._end(mine.id, note, "the time of the task is over")

    def _running(self) -> list[Application]:
        """Return the drivers of the sink that are not over."""
        return self._site.running(self._spec.name, self._listeners.memory.recall().owner)

    def _end(self, app_id: str, note: NotedLaunch, why: str) -> None:
        driver = self._site.driver(app_id, note.status_uri, self._listeners.log)
        self._listeners.log.warning("%s: ending driver %s", why, app_id)
        driver.end(_POLITE_SECONDS)
        end_transactions(self._spec, driver.status(), _FENCE_SECONDS, self._listeners.log)
