"""An act that is played in a thread of its own, so that no core waits while another act does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, Self, TypeVar

from scripts.demo.say import TRANSCRIPT, Transcript, say

T_co = TypeVar("T_co", covariant=True)


class Act(Generic[T_co]):
    """One act, from :meth:`start`; what it prints is held until it is shown.

    The thread is a daemon: when another act has failed, nobody waits for this one.

    :param title: printed when it is its turn.
    :param play: what it does; it may wait for the end of other acts.
    """

    def __init__(self, title: str, play: Callable[[], T_co]) -> None:
        self._title = title
        self._play = play
        self._transcript = Transcript()
        self._ended: Future[T_co] = Future()

    def start(self) -> Self:
        """Begin to play it."""
        threading.Thread(target=self._run, name=self._title, daemon=True).start()
        return self

    def result(self) -> T_co:
        """Wait for its end and return what it found, or raise why it failed."""
        return self._ended.result()

    def show(self) -> T_co:
        """Print it, what has been and what comes until its end, and return what it found."""
        say(f"\n{self._title}")
        self._transcript.show()
        return self.result()

    def _run(self) -> None:
        TRANSCRIPT.set(self._transcript)
        try:
            self._ended.set_result(self._play())
        except BaseException as error:  # noqa: BLE001  it is raised where the act is shown
            self._ended.set_exception(error)
