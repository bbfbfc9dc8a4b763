"""A limit to how long anything may take, also what hangs in a client library and listens to nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from airflow_provider_sinks.core.errors import UnavailableError

T = TypeVar("T")


def within(seconds: float, action: Callable[[], T]) -> T:
    """Return what an action returns, or raise what it raises.

    One that has not ended in time is left behind in its thread, which does not keep the process from ending.

    :param seconds: how long the action may take.
    :raises UnavailableError: it took longer.
    """
    future: Future[T] = Future()
    thread = threading.Thread(target=_settle, args=(future, action), name="sinks-limited", daemon=True)
    thread.start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the action's own timeout
            raise
        raise UnavailableError(
            f"no answer within {seconds:g} s", hint="Check the address, and whether a firewall drops packets."
        ) from None


def _settle(future: Future[T], action: Callable[[], T]) -> None:
    try:
        future.set_result(action())
    except BaseException as error:  # noqa: BLE001  raised again where the result is awaited
        future.set_exception(error)


class Deadline:
    """A point in time that everything must be done by.

    :param seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self, most: float) -> float:
        """Return how many seconds something may take.

        :param most: how long it may take even where there is more time.
        :raises UnavailableError: the time is over.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise UnavailableError("the time for all checks is over", hint="Give it more time, or try again.")
        return min(left, most)

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._at
