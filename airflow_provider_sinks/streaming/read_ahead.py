"""Reads several inputs at once, and gives them one behind the other."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Full, Queue, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
_LOOK_SECONDS = 0.1


def in_turn(inputs: Sequence[Iterable[T]], at_once: int) -> Iterator[T]:
    """Give all of an input, then all of the next one. Those that wait for their turn are begun already.

    The inputs are begun in their order, so the one whose turn it is is always read. What fails is raised in
    its turn. Where somebody stops before the end, each thread ends behind the item that it waits for.

    :param at_once: how many are read; of those that wait one item each is kept, and one is in hand.
    """
    if min(at_once, len(inputs)) < 2:
        for one in inputs:
            yield from one
        return
    readings = [_Reading(one) for one in inputs]
    pending: SimpleQueue[_Reading[T]] = SimpleQueue()
    for reading in readings:
        pending.put(reading)
    is_over = threading.Event()
    for _ in range(min(at_once, len(inputs))):
        threading.Thread(target=_read, args=(pending, is_over), name="read-ahead", daemon=True).start()
    try:
        for reading in readings:
            yield from reading.items()
    finally:
        is_over.set()


@dataclass(frozen=True)
class _End:
    """Stands behind the last item.

    :param error: why there are no more.
    """

    error: BaseException | None = None


@dataclass(frozen=True)
class _Reading(Generic[T]):
    """One input, and what was read of it and nobody took."""

    source: Iterable[T]
    ready: Queue[T | _End] = field(default_factory=lambda: Queue(1))

    def items(self) -> Iterator[T]:
        """Give what is read, as it comes."""
        while not isinstance(item := self.ready.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def read(self, is_over: threading.Event) -> None:
        """Read to the end."""
        end = _End()
        try:
            for item in self.source:
                if not self._hand_over(item, is_over):
                    return
        except BaseException as error:  # noqa: BLE001  raised where its turn is
            end = _End(error)
        self._hand_over(end, is_over)

    def _hand_over(self, item: T | _End, is_over: threading.Event) -> bool:
        while not is_over.is_set():
            with suppress(Full):
                self.ready.put(item, timeout=_LOOK_SECONDS)
                return True
        return False


def _read(pending: SimpleQueue[_Reading[T]], is_over: threading.Event) -> None:
    with suppress(Empty):
        while not is_over.is_set():
            pending.get_nowait().read(is_over)
