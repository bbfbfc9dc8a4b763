"""A thread that follows a launch's status while the task's own thread waits for the driver.

It turns the status into lines of the task log, into the witness, and into the status that everybody may see.
The line of an epoch is written at most every few seconds; a change of state is written at once. What could
not be written is written again. It never touches the driver.

A status that is absent, stale or torn is said, once, and harms nothing: what is committed stands in the
target. A living driver writes its status every ten seconds even when it has nothing to do.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.metadata.memory import SinkMemory

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

LOOK_SECONDS = 0.5
SILENCE_SECONDS = 120.0
"""After this long without a new status it is said that the driver is silent."""
_LINE_SECONDS = 5.0
_SHOW_SECONDS = 10.0
_SHOW_IDLE_SECONDS = 60.0
_WITNESS_SECONDS = 60.0
_AGAIN_SECONDS = 10.0
_WITNESS_OF_MANY_SECONDS = 600.0
"""A triggerer serves few calls a second; a thousand sinks that wait in it must not write every minute."""


class StatusWatch(threading.Thread):
    """Follow one launch until :meth:`finish`.

    :param read: returns the text of the newest status, or ``None`` before the first.
    :param memory: takes the witness and the status that is shown.
    :param log: takes the lines.
    :param tell: told each new status, and the newest again if it raised; that is a warning.
    :param look_seconds: the time between two looks.
    :param is_one_of_many: hundreds are in this process: the witness is written when the state changes, and
        else every ten minutes, at a time of its own. It lags, which is what a witness may do.
    """

    def __init__(
        self,
        read: Callable[[], str | None],
        memory: SinkMemory,
        log: Logger,
        tell: Callable[[SinkStatus], None] = lambda _: None,
        look_seconds: float = LOOK_SECONDS,
        *,
        is_one_of_many: bool = False,
    ) -> None:
        super().__init__(name="sink-status", daemon=True)
        self._read = read
        self._memory = memory
        self._log = log
        self._tell = tell
        self._look_seconds = look_seconds
        self._over = threading.Event()
        self._text: str | None = None
        self._heard_at = time.monotonic()
        self._silent = False
        self._unreadable = ""
        self._status: SinkStatus | None = None
        self._logged: SinkStatus | None = None
        self._logged_at = 0.0
        self._kept: Witness | None = None
        self._is_one_of_many = is_one_of_many
        self._keep_again_at = 0.0
        if is_one_of_many:
            self._keep_again_at = time.monotonic() + random.uniform(0, _WITNESS_OF_MANY_SECONDS)  # noqa: S311  a spread
        self._shown: SinkStatus | None = None
        self._shown_at = 0.0
        self._untold: SinkStatus | None = None
        self._untold_since = 0.0

    def run(self) -> None:
        """Look again and again. Called by :meth:`start`, in the new thread."""
        while not self._over.wait(self._look_seconds):
            self.look()

    def finish(self) -> SinkStatus | None:
        """Stop looking, say and keep what is left, and return the newest status, if there ever was one."""
        self._over.set()
        if self.is_alive():
            self.join()
        self.look()
        self._tell_again(0)
        if (status := self._status) is not None:
            self._say(status)
            self._keep(status)
            self._show(status)
        return self._status

    def look(self) -> None:
        """Look once. Called by :meth:`run`, or by whoever follows a launch without a thread. Never raises."""
        try:
            text = self._read()
            new = text is not None and text != self._text
            if text is not None and new:
                self._text = text
                self._hear(SinkStatus.from_json(text))
        except Exception as error:  # noqa: BLE001  whatever it is: the driver may well be fine
            self._say_unreadable(error)
            return
        self._mind_silence()
        self._tell_again(_AGAIN_SECONDS)
        if (status := self._status) is not None:
            self._follow(status)

    def _hear(self, status: SinkStatus) -> None:
        """Take a new status."""
        self._status = status
        self._unreadable = ""
        self._heard_at = time.monotonic()
        if self._silent:
            self._silent = False
            self._log.info("launch %d: the driver reports again", status.launch)
        try:
            self._tell_newest(status)
        except Exception as error:  # noqa: BLE001  a link that could not be stored stops no sink
            self._log.warning("launch %d: %s", status.launch, error)

    def _tell_newest(self, status: SinkStatus) -> None:
        self._untold, self._untold_since = status, time.monotonic()
        self._tell(status)
        self._untold = None

    def _tell_again(self, after_seconds: float) -> None:
        """Tell the newest status again if nobody took it."""
        if self._untold is not None and _elapsed(self._untold_since) >= after_seconds:
            with contextlib.suppress(Exception):  # it was said once
                self._tell_newest(self._untold)

    def _say_unreadable(self, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"
        if words != self._unreadable:
            self._unreadable = words
            self._log.warning("the status of the launch could not be read: %s", words)

    def _mind_silence(self) -> None:
        """Say once that nothing is heard of the driver."""
        over = self._status is not None and self._status.state.is_final
        if self._silent or over or _elapsed(self._heard_at) < SILENCE_SECONDS:
            return
        self._silent = True
        last = "it has not reported yet" if self._status is None else f"last: {self._status.one_line()}"
        self._log.warning("nothing was heard of the driver for %.0f s; %s", SILENCE_SECONDS, last)

    def _follow(self, status: SinkStatus) -> None:
        is_first = self._logged is None
        changed = is_first or (self._logged is not None and self._logged.state is not status.state)
        if changed or _elapsed(self._logged_at) >= _LINE_SECONDS:
            self._say(status)
        must_keep = changed and not (is_first and self._is_one_of_many)
        if must_keep or time.monotonic() >= self._keep_again_at:
            self._keep(status)
        if changed or _elapsed(self._shown_at) >= self._show_pause(status):
            self._show(status)

    def _say(self, status: SinkStatus) -> None:
        if _same_line(self._logged, status):
            return
        self._log.info("launch %d: %s", status.launch, status.one_line())
        self._logged, self._logged_at = status, time.monotonic()

    def _keep(self, status: SinkStatus) -> None:
        """Keep the witness; of a fenced launch there is nothing to keep, because its successor's is newer."""
        witness = status.witness()
        if witness is None or status.state is SinkState.FENCED or witness == self._kept:
            return
        self._kept = witness if self._memory.keep(witness) else None
        pause = _WITNESS_OF_MANY_SECONDS if self._is_one_of_many else _WITNESS_SECONDS
        self._keep_again_at = time.monotonic() + (pause if self._kept else _AGAIN_SECONDS)

    def _show_pause(self, status: SinkStatus) -> float:
        """Return how many seconds must lie between two writes: more while nothing happens."""
        return _SHOW_IDLE_SECONDS if _same_line(self._shown, status) else _SHOW_SECONDS

    def _show(self, status: SinkStatus) -> None:
        """Show the status to everybody; in the place of a fenced launch its successor shows its own."""
        if status.state is SinkState.FENCED or status == self._shown:
            return
        self._shown = status if self._memory.show(status) else None
        self._shown_at = time.monotonic()


def _same_line(before: SinkStatus | None, status: SinkStatus) -> bool:
    return before is not None and _line_of(before) == _line_of(status)


def _line_of(status: SinkStatus) -> tuple[object, ...]:
    return status.state, status.epoch, bool(status.waits_for)


def _elapsed(since: float) -> float:
    return time.monotonic() - since
