"""A line that moves while something takes long, so that nobody wonders whether it hangs.

On a terminal all steps that run share one line, which is rewritten in place; elsewhere (CI, a log file) a
step prints one line when it ends. Steps may run in several threads.

    with step("Kafka broker") as line:
        line.say("formatting the data folder")
        line.leave("4.1.2 on port 41235")
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_REDRAW_SECONDS = 0.2


class Line:
    """One step: its title, what it does now, for how long, and what it leaves behind."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.outcome = "ready"
        self._doing = ""
        self._started = time.monotonic()

    def say(self, doing: str) -> None:
        """Show what the step does now."""
        self._doing = doing

    def leave(self, outcome: str) -> None:
        """Say what to show when the step has ended well, in place of ``ready``."""
        self.outcome = outcome

    @property
    def now(self) -> str:
        """The step in progress, as it is drawn."""
        return f"{self.title}: {self._doing or 'starting'} ... {self._seconds:.0f} s"

    @property
    def last(self) -> str:
        """The step when it has ended."""
        return f"{self.title}: {self.outcome} ({self._seconds:.1f} s)"

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started


class _Board:
    """Draws all steps that run, in one thread, because two that rewrite one line would garble it."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._lock = threading.Lock()
        self._painter: threading.Thread | None = None

    def add(self, line: Line) -> None:
        with self._lock:
            self._lines.append(line)
            if self._painter is None and sys.stderr.isatty():
                self._painter = threading.Thread(target=self._paint, daemon=True)
                self._painter.start()

    def remove(self, line: Line) -> None:
        with self._lock:
            self._lines.remove(line)

    def tell(self, text: str, stream: TextIO) -> None:
        with self._lock:
            if self._painter:
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()
            stream.write(f"{text}\n")
            stream.flush()

    def _paint(self) -> None:
        while True:
            with self._lock:
                if not self._lines:
                    self._painter = None
                    return
                width = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r{' | '.join(line.now for line in self._lines)[:width]}\033[K")
                sys.stderr.flush()
            time.sleep(_REDRAW_SECONDS)


_BOARD = _Board()


def tell(text: str) -> None:
    """Print for good, above the line that moves."""
    _BOARD.tell(text, sys.stdout)


@contextmanager
def step(title: str, tell: Callable[[str], None] | None = None) -> Iterator[Line]:
    """Show a moving line while the block runs, and how it ended.

    :param tell: takes the line of its end; by default it is printed, apart from what a program puts out.
    """
    line = Line(title)
    _BOARD.add(line)
    try:
        yield line
    except BaseException as error:
        line.leave("failed" if isinstance(error, Exception) else "stopped")
        raise
    finally:
        _BOARD.remove(line)
        if tell is None:
            _BOARD.tell(line.last, sys.stderr)
        else:
            tell(line.last)
