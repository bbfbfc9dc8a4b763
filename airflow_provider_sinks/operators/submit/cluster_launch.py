"""A launch in cluster mode: the driver is an application of YARN, and outlives whoever submitted it.

There are never two drivers on purpose. In this order:

1. the task reads what it noted down of an earlier try, and asks the manager which drivers of this sink run;
2. it goes on with the one that is its own, or ends all of them and waits until they are over
   (``core/launch/reconnect.py`` decides);
3. only then it notes down the launch, submits it, and notes down its id. A worker that dies in between leaves
   a driver with a tag that the note names, so that the next try finds it.

A driver that could not be seen is covered by the start of the next one, which fences it.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from airflow_provider_sinks.arguments import plain
from airflow_provider_sinks.clients.launch_store import LaunchStore, forget_old_launches
from airflow_provider_sinks.core.errors import (
    JobFailedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.reconnect import NOT_MINE, GoOn, LaunchAnew, NotedLaunch, first_of
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.launch.yarn import Application, Fate, fate, launch_tag
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.launch_folders import new_directory
from airflow_provider_sinks.drivers.on_yarn import ClusterDriver, end_transactions
from airflow_provider_sinks.operators.submit.client_launch import Submit
from airflow_provider_sinks.operators.submit.cluster_end import launch_end, shown_end
from airflow_provider_sinks.operators.submit.cluster_site import ClusterSite
from airflow_provider_sinks.operators.submit.launch import LaunchEnd, LaunchOrder, Listeners
from airflow_provider_sinks.operators.submit.status_watch import StatusWatch
from airflow_provider_sinks.operators.submit.yarn_submit import YarnSubmit

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_POLITE_SECONDS = 30.0
_KILL_POLITE_SECONDS = 1.5
_KILL_SECONDS = 1.0
_FENCE_SECONDS = 1.5
"""Together below the five seconds that Airflow gives a task between SIGTERM and SIGKILL."""
_KEPT_LAUNCHES = 5
_LOOK_SECONDS = 2.0
_AWAY_SECONDS = 300.0
_STEP_SECONDS = 0.25


class ClusterLaunch:
    """One driver on YARN, found or submitted.

    :param spec: the sink.
    :param order: counts a new launch and returns what it is to run; called only if one is needed.
    :param submit: runs ``spark-submit``, which does not wait for the driver's end.
    :param listeners: hear how it goes.
    :param site: where it runs.
    :param owner: whose sink it is.
    :param connections: what tells apart the options that stand now (``visible_digests``): a driver with other
        ones is not gone on with. ``None`` when connections are not followed.
    """

    def __init__(
        self,
        spec: SinkSpec,
        order: Callable[[], LaunchOrder],
        submit: Submit,
        *,
        listeners: Listeners,
        site: ClusterSite,
        owner: str,
        connections: Mapping[str, str] | None = None,
    ) -> None:
        self._spec = spec
        self._sink = spec.name
        self._owner = owner
        self._order = order
        self._listeners = listeners
        self._site = site
        self._log = listeners.log
        self._connections = connections or {}
        self._launch_id = uuid.uuid4().hex
        self._submit = YarnSubmit(self._launch_id, submit, site.client)
        self._driver: ClusterDriver | None = None
        self._stopped = False
        self._changed: tuple[str, ...] = ()
        self._tracking_url = ""
        self._number = 0

    def run(self) -> LaunchEnd:
        """Find or submit the driver, follow it to its end, and return how it ended."""
        driver = self.begin()
        return LaunchEnd(1, stopped=True) if driver is None else self._follow(driver)

    def begin(self) -> ClusterDriver | None:
        """Return the driver that runs this sink from now on, the only one; ``None`` when told to stop."""
        site, note = self._site, self._site.note()
        running = site.running(self._sink, self._owner)
        stopping = bool(running and note and is_stopping(note, self._log))
        changed = note is not None and note.differs_from(self._connections)
        first = first_of(note, site.clears, running, durable=site.durable, stopping=stopping, changed=changed)
        match first:
            case GoOn(driver, kept):
                self._end_others(first.end, NOT_MINE, kept)
                self._log.info("launch %d: driver %s runs, going on with it", kept.launch, driver.id)
                return self._take(driver, kept)
            case LaunchAnew():
                order = self._order()  # counted before others are ended, so that their tasks know who did it
                self._end_others(first.end, first.why, note)
                return None if self._stopped else self._submit_new(order)
            case _:
                assert_never(first)

    def restart(self, changed: tuple[str, ...]) -> None:
        """End the driver politely because connections changed."""
        self._changed = changed
        if self._driver is not None:
            self._driver.end(_POLITE_SECONDS)

    def end(self) -> None:
        """End the driver, wherever it is on its way."""
        self._stopped = True
        try:
            self._end_quickly()
        except SinkError as error:
            self._log.warning("the driver may still run: %s", error)

    def _end_quickly(self) -> None:
        if self._driver is not None:
            self._driver.end(_KILL_POLITE_SECONDS, _KILL_SECONDS)
        else:
            self._submit.call_off()

    def _end_others(self, others: tuple[Application, ...], why: str, note: NotedLaunch | None) -> None:
        for app in others:
            self._log.warning("driver %s of this sink runs, and is ended first: %s", app.id, why)
            if note is not None and launch_tag(note.launch_id) in app.tags:
                self._site.driver(app.id, note.status_uri, self._log).end(_POLITE_SECONDS)
            else:  # nobody here knows where it could be asked to stop
                self._site.driver(app.id, "", self._log).kill()

    def _submit_new(self, order: LaunchOrder) -> ClusterDriver | None:
        site = self._site
        launches = f"{site.status_root}/{self._sink}/launches"
        self._forget_old(launches)
        uri = f"{launches}/{order.number:06d}-{self._launch_id[:8]}"
        got = order.connections.visible_digests()
        note = NotedLaunch(
            self._launch_id, order.number, site.clears, uri, connections=got, sink=plain(self._spec)
        )
        files = LaunchFiles(new_directory(self._sink, order.number))
        self._log.info("launch %d: its status will be in %s", order.number, uri)
        try:
            files.write(replace(order.launch(), status_uri=uri), order.connections.to_json())
            site.keep(note)
            app = self._submit.run(files, note.sink, self._owner)
        except SinkError:
            raise  # what was submitted all the same is found by the next try
        except BaseException:
            self._submit.call_off()  # a timeout
            raise
        finally:
            files.forget_connections()
        if app is None:
            return None
        self._log.info("launch %d: driver %s was submitted", order.number, app.id)
        return self._take(app, note)

    def _forget_old(self, launches: str) -> None:
        """Tidy up; every earlier driver of this sink is over by now."""
        try:
            forget_old_launches(launches, _KEPT_LAUNCHES)
        except UnavailableError as error:
            self._log.info("%s", error)

    def _take(self, app: Application, note: NotedLaunch) -> ClusterDriver:
        """Note the driver down, and show where its pages are: nobody may follow it on this worker."""
        self._number = note.launch
        self._site.keep(replace(note, id=app.id))
        self._driver = self._site.driver(app.id, note.status_uri, self._log)
        self._tracking_url = app.tracking_url
        try:
            self._tell(SinkStatus(self._sink, note.launch, spark_app_id=app.id))
        except Exception as error:  # noqa: BLE001  a link that could not be stored stops no sink
            self._log.warning("launch %d: %s", note.launch, error)
        if self._stopped:  # before it was known
            self._end_quickly()
        return self._driver

    def _follow(self, driver: ClusterDriver) -> LaunchEnd:
        """Follow the driver to its end; end it when something other than its end takes us away."""
        watch = StatusWatch(
            driver.status_text, self._listeners.memory, self._log, self._tell, look_seconds=_LOOK_SECONDS
        )
        watch.start()
        try:
            application = self._wait(driver)
        except (UnavailableError, _SupervisorGoneError):
            raise  # the driver goes on, and the next try goes on with it
        except BaseException:
            self._end_quickly()  # a timeout
            raise
        finally:
            status = watch.finish()
            if self._stopped:
                end_transactions(self._spec, status, _FENCE_SECONDS, self._log)
        return self._outcome(driver, application, status)

    def _wait(self, driver: ClusterDriver) -> Application | None:
        """Return what the manager says of the driver when it is over."""
        supervisor, seen_at = os.getppid(), time.monotonic()
        while True:
            try:
                application = driver.application()
            except UnavailableError as error:
                if time.monotonic() - seen_at > _AWAY_SECONDS:
                    raise
                self._log.warning("%s; the driver goes on", error.primary)
            else:
                seen_at = time.monotonic()
                self._tracking_url = application.tracking_url if application else ""
                if fate(application) is not Fate.ALIVE:
                    return application
            self._pause(supervisor)

    def _pause(self, supervisor: int) -> None:
        """Sleep until the next question is due; not at all once the driver was ended."""
        until = time.monotonic() + self._site.poll_seconds
        while time.monotonic() < until and not self._stopped and not self._changed:
            if os.getppid() != supervisor:
                raise _SupervisorGoneError(
                    f'Airflow gave up the task of sink "{self._sink}"',
                    "Its driver goes on, for the next try.",
                )
            time.sleep(_STEP_SECONDS)
        time.sleep(_STEP_SECONDS)

    def _tell(self, status: SinkStatus) -> None:
        """Pass a status on, with the driver's page as the manager shows it; its own is often hidden."""
        self._listeners.tell(replace(status, spark_ui_url=self._tracking_url or status.spark_ui_url))

    def _outcome(
        self, driver: ClusterDriver, application: Application | None, status: SinkStatus | None
    ) -> LaunchEnd:
        memory = self._listeners.memory
        found = launch_end(driver, application, status, self._number, memory)
        end = replace(found, stopped=self._stopped, changed=self._changed)
        return shown_end(end, self._sink, self._number, memory)


def is_stopping(note: NotedLaunch, log: Logger) -> bool:
    """Return whether somebody asked the driver of a launch to stop."""
    try:
        return LaunchStore(note.status_uri).stop_asked()
    except UnavailableError as error:
        log.warning("whether driver %s was asked to stop cannot be seen: %s", note.id, error)
        return False


class _SupervisorGoneError(JobFailedError):
    """Nobody waits for this task any more; the driver is left to the next try."""
