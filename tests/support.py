"""What tests share besides fixtures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_POLL_SECONDS = 0.05


class TopicFactory(Protocol):
    """Makes a topic for one test: ``topic("source", partitions=4, **{"cleanup.policy": "compact"})``."""

    def __call__(self, suffix: str = "", partitions: int = 1, **config: str) -> str: ...


def until(
    holds: Callable[[], bool], what: str, seconds: float = 120.0, meanwhile: tuple[type[Exception], ...] = ()
) -> None:
    """Wait for something that a service does a little later than it says, and fail if it never does.

    :param meanwhile: what ``holds`` may raise until then; the last one is told where it never ends.
    """
    deadline = time.monotonic() + seconds
    while True:
        told = ""
        try:
            if holds():
                return
        except meanwhile as error:
            told = f"; {error}"
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}{told}"
        time.sleep(_POLL_SECONDS)
