"""Ends a driver for good when the task that started it is gone and nothing else ends it.

Such a driver ends by itself between two epochs. An epoch may never end, though: its broker is gone, or the
Spark master that would give it executors. Then nobody is left who could end the process from outside.

Ending it in the middle of an epoch is safe at any time: what is not committed was never visible, and the next
start aborts it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import is_abandoned, is_held
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.streaming.driver_log import say

PATIENCE_SECONDS = 60.0
"""How long an epoch, a start or an end may take once the task is gone."""
_LOOK_SECONDS = 1.0


class OrphanWatch(threading.Thread):
    """Looks after the launch's lock for as long as the process lives.

    A launch on a cluster has no lock: there Airflow finds the driver again, or YARN ends it.

    :param files: of the launch, on this machine.
    :param patience_seconds: how long the driver may go on without its task.
    :param end: ends the process with an exit code; does not return.
    """

    def __init__(
        self,
        files: LaunchFiles,
        patience_seconds: float = PATIENCE_SECONDS,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        super().__init__(name="orphan-watch", daemon=True)
        self._files = files
        self._patience_seconds = patience_seconds
        self._end = end
        self._was_held = False

    def run(self) -> None:
        """Wait until nobody holds the launch, then for as long as patience lasts. Called by ``start``."""
        while not self._is_orphan():
            time.sleep(_LOOK_SECONDS)
        time.sleep(self._patience_seconds)
        error = JobFailedError(
            "the task that started this launch is gone",
            f"What its driver was doing did not end within {self._patience_seconds:g} s.",
            "What was committed stays. The next start goes on from there.",
        )
        try:
            say(str(error))
            self._leave(error)
        finally:
            self._end(error.exit_code)

    def _is_orphan(self) -> bool:
        """Whether the launch was held once and is not any more; its directory may be gone with the task."""
        lock = self._files.liveness_lock
        self._was_held = self._was_held or is_held(lock)
        if self._was_held and not lock.exists():
            return True
        return is_abandoned(lock)

    def _leave(self, error: JobFailedError) -> None:
        """Replace the status by its end, if there is one that can be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if text := self._files.read_status():
                self._files.write_status(SinkStatus.from_json(text).ended(error).to_json())
