"""A limit to how long anything may take, also what hangs in a client library and listens to nobody."""

from __future__ import annotations

import threading
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
