"""Drivers of earlier launches that outlived their task on this worker, and their end.

A driver whose task was killed notices it and ends by itself between two epochs. The next launch of the same
sink still looks: two drivers of one sink are exact, because the newer one fences the older, but the older one
would cost a machine and a failed task. A process is only ever ended when its pid, the time at which it was
started and the launch directory in its command line all fit: a pid alone may be a stranger's by now.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import is_abandoned
from airflow_provider_sinks.core.lifecycle.steps import EndProcess

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_POLITE_SECONDS = 10.0
_SIGTERM_SECONDS = 2.0
_POLL_SECONDS = 0.1
_CLOCK_SECONDS = 2.0
"""A process's start is told in wall-clock time, which may be set in between by about this much."""


@dataclass(frozen=True)
class DriverMark:
    """Which process a driver is.

    :param host: the machine, or container, that the pid belongs to.
    :param pid: of ``spark-submit``, which becomes the JVM and leads a process group of its own.
    :param started: when it was started, in seconds since 1970.
    """

    host: str
    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> DriverMark:
        """Describe a process; one that cannot be seen gets a mark that fits none."""
        try:
            started = psutil.Process(pid).create_time()
        except psutil.Error:
            started = 0.0
        return cls(platform.node(), pid, started)

    def write(self, files: LaunchFiles) -> None:
        """Leave the mark in the launch directory; without room for it the driver still ends by itself."""
        with contextlib.suppress(OSError):
            files.driver.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, files: LaunchFiles) -> DriverMark | None:
        """Return the mark of a launch, or ``None`` when it left none that can be read."""
        try:
            return cls(**json.loads(files.driver.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def lives(self, files: LaunchFiles) -> bool:
        """Return whether this very process still runs.

        :param files: of the launch, whose directory must stand in the command line.
        """
        if self.host != platform.node():
            return False
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) <= _CLOCK_SECONDS
            ours = str(files.directory) in process.cmdline()
            return same and ours and process.status() != psutil.STATUS_ZOMBIE
        return False


def end_abandoned(launches: Path, log: Logger, hurry: Callable[[], bool]) -> None:
    """End the drivers of a sink whose tasks are gone: politely, and hard when they do not listen.

    A driver whose task lives is left alone: the new one decides, and fences it only when it may start.

    :param launches: the folder with the launch directories of one sink.
    :param hurry: says that there is no time left for waiting.
    """
    for files, mark in _living(launches):
        if is_abandoned(files.liveness_lock):
            log.warning("the task of %s is gone, and its driver (pid %d) runs", files.directory, mark.pid)
            _end(files, mark, hurry)
            log.info("driver %d has ended", mark.pid)
        else:
            log.warning("another task runs this sink, as %s: a start takes over from it", files.directory)


def living_drivers(launches: Path) -> list[EndProcess]:
    """Return the drivers of a sink that live on this machine.

    :param launches: the folder with the launch directories of one sink.
    """
    return [EndProcess(mark.pid, str(files.directory)) for files, mark in _living(launches)]


def end_process(driver: EndProcess, hurry: Callable[[], bool] = lambda: False) -> None:
    """End a driver: politely, and hard when it does not listen; nothing when it is over by now."""
    files = LaunchFiles(Path(driver.directory))
    mark = DriverMark.read(files)
    if mark is not None and mark.pid == driver.pid:
        _end(files, mark, hurry)


def _living(launches: Path) -> Iterator[tuple[LaunchFiles, DriverMark]]:
    for folder in sorted(launches.iterdir()) if launches.is_dir() else ():
        files = LaunchFiles(folder)
        mark = DriverMark.read(files)
        if mark is not None and mark.lives(files):
            yield files, mark


def _end(files: LaunchFiles, mark: DriverMark, hurry: Callable[[], bool]) -> None:
    files.ask_to_stop()
    for seconds, number in ((_POLITE_SECONDS, signal.SIGTERM), (_SIGTERM_SECONDS, signal.SIGKILL)):
        holds_within(lambda: hurry() or not mark.lives(files), seconds, pause_seconds=_POLL_SECONDS)
        if mark.lives(files):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(mark.pid, number)
