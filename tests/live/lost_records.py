"""A broker that loses the newest records of a partition, as one does that lags behind and is elected.

Its log is cut while it is down; when it is back it leads with a newer leader epoch, and what is written then
has the offsets of what it lost.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_sinks.local.broker import KafkaBroker

_HEAD = struct.Struct(">qi")
"""Of a batch: its first offset, and how many bytes follow."""


def lose_from(broker: KafkaBroker, topic: str, first: dict[int, int]) -> None:
    """Restart a broker without the batches of a topic that begin at an offset or behind it.

    :param first: by partition; a batch begins there.
    """
    broker.stop()
    for partition, offset in first.items():
        folder = next(broker.folder.rglob(f"{topic}-{partition}/"))
        _cut(folder, offset)
    for mark in broker.folder.rglob(".kafka_cleanshutdown"):
        mark.unlink()
    broker.restart()


def _cut(folder: Path, offset: int) -> None:
    """Cut the only segment of a partition; the broker makes the rest anew."""
    log = folder / "00000000000000000000.log"
    ends = [at for first, at in _batches(log.read_bytes()) if first == offset]
    with log.open("r+b") as file:
        file.truncate(ends[0])
    for other in folder.iterdir():
        if other.suffix in {".index", ".timeindex", ".snapshot"}:
            other.unlink()


def _batches(log: bytes) -> Iterator[tuple[int, int]]:
    """Yield the first offset of each batch, and where it stands."""
    at = 0
    while at + _HEAD.size <= len(log):
        first, size = _HEAD.unpack_from(log, at)
        if not size:
            return
        yield first, at
        at += size + _HEAD.size
