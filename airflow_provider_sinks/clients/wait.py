"""Waiting for what has to be looked at again and again: one loop, for whoever waits.

It takes no lock, so that a signal handler may wait too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def look_until(
    look: Callable[[], T], is_enough: Callable[[T], bool], seconds: float, pause_seconds: float
) -> T:
    """Look until what is seen is enough, and return it; or what is seen last, when the time is over.

    Looks at least once, and once more right before the time is over.

    :param pause_seconds: the time between two looks.
    """
    deadline = time.monotonic() + seconds
    while not is_enough(seen := look()):
        left_seconds = deadline - time.monotonic()
        if left_seconds <= 0:
            break
        time.sleep(min(pause_seconds, left_seconds))
    return seen


def holds_within(condition: Callable[[], bool], seconds: float, pause_seconds: float) -> bool:
    """Wait until a condition holds or the time is over, and return whether it holds."""
    return look_until(condition, bool, seconds, pause_seconds)
