"""Programs in sessions of their own: started, awaited until they answer, stopped with all their children.

A session and not only a process group, because Spark's Python daemon makes a group of its own.
Nothing is ever stopped by name: only what was started here, by its session.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

import psutil

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.core.errors import SinkError

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 10.0
_KILL_SECONDS = 10.0


class LocalServiceError(SinkError):
    """A part of the local stack did not start, did not answer or ended early."""


class Service:
    """One program, its log file, and the session that holds everything it starts.

    :param name: how messages call it.
    :param argv: the command line.
    :param folder: its working directory; the log is ``<folder>/<name>.log``.
    :param env: its whole environment; None means ours.
    :param user: who runs it; None means the user that we are.
    :param stop_signal: what asks it to end in order.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.folder = folder
        self.env = env
        self.user = user
        self.stop_signal = stop_signal
        self.log = folder / f"{name.replace(' ', '-')}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The leader of the session."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the program itself lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; its output is added to the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,
            )

    def start_until(self, answers: Callable[[], bool], timeout_seconds: float) -> None:
        """Start the program, and return when ``answers()`` is true; where it never is, nothing stays running.

        :raises LocalServiceError: see :meth:`wait_until`.
        """
        self.start()
        try:
            self.wait_until(answers, timeout_seconds)
        except BaseException:
            self.kill()
            raise

    def wait_until(
        self, answers: Callable[[], bool], timeout_seconds: float, pause_seconds: float = _POLL_SECONDS
    ) -> None:
        """Return when ``answers()`` is true.

        :param pause_seconds: between two questions, where asking takes the processor from who shall answer.
        :raises LocalServiceError: when the program ended or did not answer in time, with the end of its log.
        """

        def answers_now() -> bool:
            if answers():
                return True
            if not self.running:
                raise self.failure(f"{self.name} ended with exit code {self._started().returncode}")
            return False

        if not holds_within(answers_now, timeout_seconds, pause_seconds=pause_seconds):
            raise self.failure(f"{self.name} did not answer within {timeout_seconds:.0f} s")

    def wait(self, timeout_seconds: float) -> int:
        """Wait for the program's own end and return its exit code."""
        try:
            return self._started().wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise self.failure(f"{self.name} did not end within {timeout_seconds:.0f} s") from None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to everything in the session."""
        _send(self.pid, number)

    def freeze(self) -> None:
        """Stop the clock of everything in the session, and return when no thread of it runs any more."""
        self.send(signal.SIGSTOP)
        if not holds_within(lambda: _is_frozen(self.pid), _KILL_SECONDS, pause_seconds=_POLL_SECONDS):
            raise self.failure(f"{self.name} could not be frozen")

    def thaw(self) -> None:
        """Let everything in a frozen session go on."""
        self.send(signal.SIGCONT)

    def stop(self, grace_seconds: float = _GRACE_SECONDS) -> None:
        """End the program in order, then what is left of its session. Stopping twice does nothing."""
        if self._process is None:
            return
        self.thaw()
        if self.running:
            self._process.send_signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """End the whole session at once, as a power cut would."""
        if self._process is None:
            return
        if not end_session(self.pid):
            raise self.failure(f"{self.name} could not be killed")
        self._process.wait(_KILL_SECONDS)

    def failure(self, primary: str) -> LocalServiceError:
        """Return an error that shows the last lines of this program's log."""
        return LocalServiceError(primary, tail(self.log), f"the whole log is {self.log}")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise LocalServiceError(f"{self.name} was not started")
        return self._process


def session_members(session: int) -> list[int]:
    """Return the living processes of a session. Zombies do not count: they are only waiting to be read."""
    return [pid for pid in psutil.pids() if _session_of(pid) == session and _lives(pid)]


def end_session(session: int) -> bool:
    """Kill everything in a session, and say whether that succeeded."""

    def is_gone() -> bool:
        _send(session, signal.SIGKILL)
        return not session_members(session)

    return holds_within(is_gone, _KILL_SECONDS, pause_seconds=_POLL_SECONDS)


def _send(session: int, number: signal.Signals) -> None:
    for pid in session_members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_frozen(session: int) -> bool:
    return all(map(_stands_still, session_members(session)))


def _stands_still(pid: int) -> bool:
    """Judge each thread: a signal stops a process thread by thread, and one that still runs may answer."""
    try:
        threads = [psutil.Process(thread.id) for thread in psutil.Process(pid).threads()]
        return all(thread.status() == psutil.STATUS_STOPPED for thread in threads)
    except psutil.NoSuchProcess:
        return False


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def java_program() -> str:
    """Return the Java that Spark's own scripts would take: ``JAVA_HOME``, else the one in ``PATH``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        raise LocalServiceError("there is no Java", hint="install Java 17 or newer")
    return found


def tail(path: Path, lines: int = 30) -> str:
    """Return the last lines of a log, or why there are none."""
    if not path.exists():
        return f"there is no {path.name}"
    with path.open(encoding="utf-8", errors="replace") as log:
        return "".join(deque(log, maxlen=lines)).rstrip() or f"{path.name} is empty"


def unwind_on_signals() -> None:
    """Turn SIGTERM and SIGHUP into SystemExit, so that ``with`` blocks stop what they started."""

    def unwind(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    signal.signal(signal.SIGHUP, unwind)
