"""What the demo prints: its own lines, those of its steps, and what others said, set in.

An act that is played beside others prints into its transcript, which is shown when it is its turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from textwrap import indent

from airflow_provider_sinks.local import progress


class Transcript:
    """The lines of one act: held until it is shown, and from then on printed as they come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: list[str] = []
        self._is_shown = False

    def add(self, text: str) -> None:
        """Print, or hold until it is time."""
        with self._lock:
            if self._is_shown:
                progress.tell(text)
            else:
                self._held.append(text)

    def show(self) -> None:
        """Print what was held, and what comes from now on."""
        with self._lock:
            self._is_shown = True
            for text in self._held:
                progress.tell(text)


TRANSCRIPT: ContextVar[Transcript | None] = ContextVar("transcript", default=None)
"""Where the lines of this thread go; by default they are printed."""


def say(text: str) -> None:
    """Print for the one who watches."""
    if transcript := TRANSCRIPT.get():
        transcript.add(text)
    else:
        progress.tell(text)


def quote(texts: Iterable[str]) -> None:
    """Print what a task, a topic or a command said."""
    for text in texts:
        say(indent(text, "    "))


def step(title: str) -> AbstractContextManager[progress.Line]:
    """Show a moving line while the block runs, and say how it ended."""
    return progress.step(title, say)
