"""Writers that a worker process keeps between epochs, so that a warm epoch opens nothing."""

from __future__ import annotations

from collections import OrderedDict

from airflow_provider_sinks.connectors.epoch_writer import EpochWriter

HELD_MAX = 16

HeldKey = tuple[str, str, str]
"""Sink, run and writer id."""

_held: OrderedDict[HeldKey, EpochWriter] = OrderedDict()


def holder_id(key: HeldKey) -> str | None:
    """Return the id by which a kept writer holds, or ``None``."""
    return _held[key].holder_id if key in _held else None


def take(key: HeldKey) -> EpochWriter | None:
    """Take a writer out, if one is kept."""
    return _held.pop(key, None)


def keep(key: HeldKey, writer: EpochWriter) -> None:
    """Keep a writer; the one that was idle for longest is closed when there are too many."""
    _held[key] = writer
    while len(_held) > HELD_MAX:
        _held.popitem(last=False)[1].close()


def forget_all() -> None:
    """Close all."""
    while _held:
        _held.popitem()[1].close()
