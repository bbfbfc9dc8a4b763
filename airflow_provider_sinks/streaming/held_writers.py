"""Writers that a worker process keeps between epochs, so that a warm epoch opens nothing."""

from __future__ import annotations

from collections import OrderedDict

from airflow_provider_sinks.connectors.epoch_writer import EpochWriter

HELD_MAX = 16
"""In a worker: any of them may get any source partition, so each comes to hold as many."""

HeldKey = tuple[str, str, str]
"""Sink, run and writer id."""

_held: OrderedDict[HeldKey, EpochWriter] = OrderedDict()
_most = HELD_MAX


def most() -> int:
    """Return how many this process keeps."""
    return _most


def allow(count: int) -> None:
    """Let this process, which is a driver, keep so many: it gets each source partition again and again.

    More partitions than that are served in turn, so that none of their writers is still there.
    """
    global _most  # noqa: PLW0603  of the process, as the writers are
    _most = count


def holder_id(key: HeldKey) -> str | None:
    """Return the id by which a kept writer holds, or ``None``."""
    return _held[key].holder_id if key in _held else None


def take(key: HeldKey) -> EpochWriter | None:
    """Take a writer out, if one is kept."""
    return _held.pop(key, None)


def keep(key: HeldKey, writer: EpochWriter) -> None:
    """Keep a writer; the one that was idle for longest is closed when there are too many."""
    _held[key] = writer
    while len(_held) > _most:
        _held.popitem(last=False)[1].close()


def forget_all() -> None:
    """Close all."""
    while _held:
        _held.popitem()[1].close()
