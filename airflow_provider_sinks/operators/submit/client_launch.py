"""A launch in client mode: the driver is a process of this worker, told what to do through a directory.

Nobody is left behind, whoever dies:

* the task ends or is ended: it ends the driver, politely while there is time and hard when there is not, and
  after a hard end it fences the writers, so that no reader waits for a transaction that nobody will end;
* the task is killed: the driver sees that nobody holds the launch any more and ends between two epochs; the
  next launch on this worker makes sure of it before its own driver starts;
* the task's supervisor is killed: the task asks its driver to end. It does not fence: Airflow may have
  started a successor by then, which has fenced already.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.drivers.abandoned import DriverMark, end_abandoned
from airflow_provider_sinks.drivers.application import application_file, write_library
from airflow_provider_sinks.drivers.launch_folders import launches_of, new_directory
from airflow_provider_sinks.hooks.spark import DriverProcess
from airflow_provider_sinks.operators.submit.driver_error import error_of
from airflow_provider_sinks.operators.submit.launch import LaunchEnd, LaunchOrder, Listeners
from airflow_provider_sinks.operators.submit.status_watch import StatusWatch

_KILL_POLITE_SECONDS = 2.0
_KILL_SIGTERM_SECONDS = 0.4
_FENCE_SECONDS = 1.5
"""Together below the five seconds that Airflow gives a task between SIGTERM and SIGKILL."""
_POLITE_SECONDS = 30.0
_SIGTERM_SECONDS = 3.0
_PARENT_SECONDS = 1.0


@dataclass(frozen=True)
class Submission:
    """What a launch adds to the user's arguments of ``SparkSubmitOperator``.

    :param application: the file that ``spark-submit`` runs.
    :param arguments: of the application; they hold no secret.
    :param py_files: our own code for the cluster.
    :param files: what a driver on the cluster finds in its working directory.
    :param tags: what YARN finds the application by.
    """

    application: Path
    arguments: tuple[str, ...]
    py_files: tuple[Path, ...]
    files: tuple[Path, ...] = ()
    tags: tuple[str, ...] = ()


Submit = Callable[[Submission, Callable[[SparkSubmitHook], None]], None]
"""Runs ``spark-submit`` to its end; hands the provider's hook over before it does."""


class ClientLaunch:
    """One driver on this worker, from its directory to its end.

    :param order: what to run.
    :param submit: runs ``spark-submit``.
    :param listeners: hear how it goes.
    """

    def __init__(self, order: LaunchOrder, submit: Submit, listeners: Listeners) -> None:
        self._order = order
        self._submit = submit
        self._listeners = listeners
        self._log = listeners.log
        self._files: LaunchFiles | None = None
        self._driver: DriverProcess | None = None
        self._stopped = False
        self._orphaned = False
        self._changed: tuple[str, ...] = ()
        self._over = threading.Event()

    def run(self) -> LaunchEnd:
        """Start the driver, follow it to its end, and return how it ended."""
        sink = self._order.spec.name
        end_abandoned(launches_of(sink), self._log, lambda: self._stopped)
        self._files = files = LaunchFiles(new_directory(sink, self._order.number))
        self._log.info("sink %s: %s is the directory of this launch", sink, files.directory)
        with held(files.liveness_lock):
            status = self._follow(files)
        code, last_lines = 0, ""
        if self._driver is not None:
            code, last_lines = self._driver.exit_code or 0, self._driver.last_lines
        if code and not self._changed:
            self._log.info("last lines of %s:\n%s", files.driver_log, last_lines or "(nothing was printed)")
        return LaunchEnd(code, status, last_lines, self._stopped, self._changed)

    def restart(self, changed: tuple[str, ...]) -> None:
        """End the driver politely because connections changed."""
        self._changed = changed
        self._end_driver(_POLITE_SECONDS, _SIGTERM_SECONDS)

    def end(self) -> None:
        """Ask the driver to end between two epochs, and end it when it does not."""
        self._stopped = True
        if self._driver is not None:
            self._driver.call_off()
        self._end_driver(_KILL_POLITE_SECONDS, _KILL_SIGTERM_SECONDS)

    def _follow(self, files: LaunchFiles) -> SinkStatus | None:
        """Run the driver with everything that watches it, and return the newest status."""
        listeners = self._listeners
        watch = StatusWatch(files.read_status, listeners.memory, listeners.log, listeners.tell)
        threading.Thread(target=self._watch_parent, args=[os.getppid()], daemon=True).start()
        try:
            files.write(self._order.launch(), self._order.connections.to_json())
            watch.start()
            self._run_driver(files)
        finally:
            # Does nothing, unless a timeout got us out of the waiting.
            self._end_driver(_KILL_POLITE_SECONDS, _KILL_SIGTERM_SECONDS)
            self._over.set()
            files.forget_connections()
            self._complete_status(files)
            self._fence(files)
            status = watch.finish()
        return status

    def _run_driver(self, files: LaunchFiles) -> None:
        arguments = ("--launch", str(files.directory))
        submission = Submission(application_file(), arguments, (write_library(files.directory),))
        try:
            if not self._stopped:
                self._submit(submission, self._take)
        except FileNotFoundError as error:
            raise no_spark_submit(error) from None
        except AirflowException:
            # The provider raises for each exit code but 0; what a code means is decided by who gets it.
            if self._driver is None or not self._driver.exit_code:
                raise

    def _take(self, hook: SparkSubmitHook) -> None:
        """Take the driver's output and process group into our hands."""
        assert self._files is not None  # noqa: S101  made before anything is submitted
        files = self._files
        self._driver = DriverProcess(hook, files.driver_log, lambda pid: DriverMark.of(pid).write(files))
        if self._stopped:
            self._driver.call_off()

    def _end_driver(self, polite_seconds: float, sigterm_seconds: float) -> None:
        """Return when the driver has ended: by itself, asked to, or killed."""
        if self._files is None or self._driver is None or self._driver.ended_within(0):
            return
        self._files.ask_to_stop()
        if not self._driver.ended_within(polite_seconds):
            self._driver.end(sigterm_seconds)

    def _watch_parent(self, supervisor: int) -> None:
        """End the driver when Airflow's supervisor of this task is gone: nobody could end it any more."""
        while not self._over.wait(_PARENT_SECONDS):
            if os.getppid() != supervisor:
                self._orphaned = True
                self._end_driver(_POLITE_SECONDS, _SIGTERM_SECONDS)
                return

    def _is_followed(self) -> bool:
        """Whether another launch follows, or has begun already: it fences by itself, and must not be fenced.

        Until it has announced itself only Airflow knows of it, as when a scheduler was lost: then the next
        try begins before this one is ended.
        """
        if self._orphaned or (self._changed and not self._stopped):
            return True
        return self._listeners.memory.newest_launch() > self._order.number

    def _complete_status(self, files: LaunchFiles) -> None:
        """Say how a driver ended that could not say it: its JVM ran out of memory, or was killed."""
        status = _last_words(files)
        driver = self._driver
        if driver is None or not driver.exit_code or self._stopped or self._changed:
            return
        if status is not None and not status.state.is_final:
            error = error_of(driver.exit_code, status.sink, status, driver.last_lines)
            files.write_status(status.ended(error).to_json())

    def _fence(self, files: LaunchFiles) -> None:
        """End the transactions that a driver left open which did not end in order."""
        status = _last_words(files)
        if status is None or not status.run or status.state in _IN_ORDER or self._is_followed():
            return
        spec = self._order.spec
        try:
            kind(spec).end_abandoned(
                spec, self._order.connections, status.run, status.writers, _FENCE_SECONDS
            )
        except (SinkError, ImportError) as error:
            self._log.warning(
                "the driver was ended in the middle of an epoch; readers may wait for up to %.0f s: %s",
                spec.transaction_timeout.total_seconds(),
                error,
            )


_IN_ORDER = frozenset({SinkState.STOPPED, SinkState.FENCED})
"""Ends that leave no transaction of ours open."""


def _last_words(files: LaunchFiles) -> SinkStatus | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        text = files.read_status()
        return SinkStatus.from_json(text) if text is not None else None
    return None


def no_spark_submit(error: FileNotFoundError) -> ConfigurationError:
    """Return the error of a worker that has no ``spark-submit``."""
    return ConfigurationError(
        f"{error.filename} was not found on the PATH of this worker",
        hint="Install Spark there and add it to PATH; airflow-provider-sinks[local] brings one.",
    )
