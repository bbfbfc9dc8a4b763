"""Where past epochs began, as far as the progress still tells.

A table keeps the newest record of each writer, a compacted topic for a while older ones too. Each tells where
an epoch began; the surest come first:

1. a writer's record of epoch *e*: ``from`` is where *e* began, for every source partition,
2. the single writer's record of *e*: it is committed wholly, so *e + 1* began at ``to``,
3. the driver's record after *e*: *e + 1* began at ``to``, or a little later if *e* was being repeated then.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressFormatError,
    ProgressKey,
    ProgressRecord,
    WriterId,
)


class _Surety(enum.IntEnum):
    DRIVER, WHOLE, OWN = range(3)


@dataclass(frozen=True)
class PastEpoch:
    """Where one epoch began.

    :param begin: the first offset of each source partition that the epoch could read.
    :param source: the source topic that these offsets belong to.
    :param at: when the record was written that tells it, in UTC.
    """

    generation: int
    epoch: int
    begin: Mapping[int, int]
    source: Identity
    at: str


def past_epochs(records: Iterable[tuple[WriterId, ProgressRecord]]) -> tuple[PastEpoch, ...]:
    """Return the epochs of a sink whose begin is known, oldest first.

    :param records: with their writers, oldest first.
    """
    found: dict[tuple[int, int], tuple[_Surety, PastEpoch]] = {}
    for writer, record in records:
        for surety, epoch in _told_by(writer, record):
            place = (epoch.generation, epoch.epoch)
            if place not in found or found[place][0] <= surety:
                found[place] = (surety, epoch)
    return tuple(epoch for _, (_, epoch) in sorted(found.items(), key=lambda item: item[0]))


def decoded(
    messages: Iterable[tuple[int, bytes | None, bytes | None]], sink: str
) -> Iterator[tuple[WriterId, ProgressRecord]]:
    """Return what can be read of a sink's messages; the decision about the others is made elsewhere.

    :param messages: offset, key and value, in the order of the progress topic.
    """
    for _, key, value in messages:
        found = ProgressKey.decode(key)
        if found is not None and found.sink == sink and value is not None:
            with contextlib.suppress(ProgressFormatError):
                yield found.writer, ProgressRecord.decode(value)


def _told_by(writer: WriterId, record: ProgressRecord) -> Iterator[tuple[_Surety, PastEpoch]]:
    if writer != DRIVER:
        yield _Surety.OWN, _epoch(record, record.epoch, record.from_)
    if writer == SINGLE_WRITER:
        yield _Surety.WHOLE, _epoch(record, record.epoch + 1, record.to)
    if writer == DRIVER:
        yield _Surety.DRIVER, _epoch(record, record.epoch + 1, record.to)


def _epoch(record: ProgressRecord, epoch: int, begin: Mapping[int, int]) -> PastEpoch:
    return PastEpoch(record.generation, epoch, dict(begin), record.identities.source, record.at)
