"""One Spark driver for many launches: a start of Spark costs seconds, a launch in a running one does not.

As an application for spark-submit it runs each launch that is put into its inbox, by the same function as
``sink_job.py``, and leaves the exit code beside the launch. :class:`SharedDriver` starts it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Self

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.local import jars, spark
from airflow_provider_sinks.streaming import driver_share
from tests.faults.driver import ROOT, START_SECONDS, Driver, Process, submit

_INBOX = "inbox"
_EXIT_CODE = "exit code"
_READY = "ready"
_POLL_SECONDS = 0.02
_WAIT_SECONDS = 120.0


class HostedLaunch(Driver):
    """A launch inside the shared driver: it ends by itself or by its ``stop`` file, and cannot be killed.

    :param host: the shared driver.
    :param files: the launch.
    """

    def __init__(self, host: Process, files: LaunchFiles) -> None:
        super().__init__(host, files)

    @property
    def is_over(self) -> bool:
        """Whether the launch has ended."""
        return self._written.exists()

    @property
    def _written(self) -> Path:
        return self.files.directory / _EXIT_CODE

    def wait_until(self, condition: Callable[[], bool], timeout_seconds: float = START_SECONDS) -> None:
        """Return when ``condition()`` holds; raise with the reason when the launch ends before."""

        def holds() -> bool:
            ended = self.is_over
            if condition():
                return True
            if ended:
                error = self.status.error if self.status else None
                raise AssertionError(f"the launch ended with {self._written.read_text()}: {error}")
            return False

        super().wait_until(holds, timeout_seconds)

    def wait(self, timeout_seconds: float = _WAIT_SECONDS) -> int:
        """Return the exit code that ``sink_job.py`` would have ended with."""
        self.wait_until(self._written.exists, timeout_seconds)
        return int(self._written.read_text())

    def end(self) -> None:
        """Ask it to stop, if it still runs."""
        if not self.is_over:
            self.stop()


class SharedDriver:
    """A driver that runs launches of any sinks, also side by side.

    :param folder: for its log and its inbox.
    :param python_path: folders beside ours in which it finds code.
    """

    def __init__(self, folder: Path, *python_path: Path) -> None:
        self._inbox = folder / _INBOX
        self._inbox.mkdir(parents=True)
        env = {"PYTHONPATH": ":".join(map(str, [ROOT, *python_path]))}
        brought = ",".join(map(str, [*spark.kafka_jars(), *jars.resolve(jars.SPARK_JDBC)]))
        arguments = ["--jars", brought, "--master", "local[2,4]", __file__, str(self._inbox)]
        self.process = submit("shared driver", folder, *arguments, env=env)

    def run(self, files: LaunchFiles, driver_rows: int | None = None) -> HostedLaunch:
        """Begin a launch.

        :param driver_rows: epochs of at most so many records are written by the driver itself, and no others;
            ``None`` for what it does by itself. Launches that run at the same time share it.
        """
        order = self._inbox / f"{time.time_ns()}"
        order.write_text(json.dumps([str(files.directory), driver_rows]))
        order.rename(order.with_suffix(".launch"))
        return HostedLaunch(self.process, files)

    def wait_ready(self) -> Self:
        """Return when Spark is up."""
        self.process.wait_until((self._inbox / _READY).exists, _WAIT_SECONDS)
        return self

    def close(self) -> None:
        """End it and whatever still runs in it."""
        self.process.end()


def main(inbox: Path) -> None:
    """Run launches for ever."""
    from airflow_provider_sinks.streaming.session import open_session

    spark = open_session("shared")
    (inbox / _READY).touch()
    while True:
        for order in sorted(inbox.glob("*.launch")):
            folder, driver_rows = json.loads(order.read_text())
            order.unlink()
            if driver_rows is None:
                spark.conf.unset(driver_share.SETTING)
            else:
                spark.conf.set(driver_share.SETTING, driver_rows)
            threading.Thread(target=_run, args=(LaunchFiles(Path(folder)),), daemon=True).start()
        time.sleep(_POLL_SECONDS)


def _run(files: LaunchFiles) -> None:
    from airflow_provider_sinks.streaming.job import run

    sink = str(files.read().spec.get("name"))
    code = run(files)
    _stop_queries(sink)
    written = files.directory / "exit code.new"
    written.write_text(str(int(code)))
    written.rename(files.directory / _EXIT_CODE)


def _stop_queries(sink: str) -> None:
    """Stop what a failed launch leaves running, and what would die with a driver of its own.

    Spark's client of a frozen broker closes only when that is back, and Spark gives up on it.
    """
    from pyspark.sql import SparkSession

    for query in SparkSession.builder.getOrCreate().streams.active:
        if query.name == sink:
            try:
                query.stop()
            except Exception:  # noqa: BLE001  its Java error has no name here
                traceback.print_exc(limit=1)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    finally:
        sys.stderr.flush()
        os._exit(1)
