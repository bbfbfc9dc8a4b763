"""A start of a sink, played against a connector without Spark: what the runtime calls, in its order."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from airflow_provider_sinks.connectors.base import CommitsOn, Run, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, Token, WriteResult
from airflow_provider_sinks.core.decision.facts import Creation, Existence, ResourceFacts
from airflow_provider_sinks.core.progress.history import NO_HISTORY
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId, partition_writer

if TYPE_CHECKING:
    import pyarrow as pa

SINK: Final = "orders"
SOURCE: Final = ResourceFacts("source", Existence.PRESENT, "source-system", "source-id", partitions=2)
WRITERS: Final = tuple(partition_writer(partition) for partition in range(SOURCE.partitions))
CALLS: Final = ("prepare", "open", "begin_epoch", "write_batch", "flush", "pre_commit", "commit_epoch")
"""What is called of a writer in an epoch, in order; ``commit_epoch`` only where the executor commits."""

Coordinates = tuple[int, int]
"""Source partition and offset: each row of the suite is known by them."""


class Harness(ABC):
    """What the suite must know of a target. Each test gets a fresh one, with nothing in it yet."""

    def __init__(self) -> None:
        self.made: list[SinkConnector | EpochWriter] = []
        """What the test left behind, frozen or overtaken; it is closed behind the test."""

    @abstractmethod
    def connector(self, sink: str = SINK) -> SinkConnector:
        """Return a new connector, as a new process makes it; two sinks share the progress place only."""

    @abstractmethod
    def creations(self, sink: str = SINK) -> Sequence[Creation]:
        """Return what a first start makes: the progress place, then the outputs."""

    @abstractmethod
    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        """Return one row for each offset, as the connector's ``project`` gives them.

        :param bad: offsets of records that did not parse: rows with an error.
        """

    @abstractmethod
    def visible(self, sink: str = SINK) -> list[Coordinates]:
        """Return all rows that an independent reader of the target sees now; each as often as it is there."""

    @abstractmethod
    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        """Return all dead letters that an independent reader sees now."""

    @abstractmethod
    def losing_answers(self) -> AbstractContextManager[None]:
        """Let commits of writers and of the driver happen inside, and let nobody hear of it."""

    @abstractmethod
    def losing_commits(self) -> AbstractContextManager[None]:
        """Let commits of writers and of the driver get lost inside, on their way to the target."""

    @abstractmethod
    def kill(self, writer: EpochWriter) -> None:
        """End a writer as its target sees a SIGKILL: its connections break, and it rolls nothing back."""


class PlayedStart:
    """One start of the sink.

    :param generation: to announce; ``None`` goes on in the newest.
    """

    def __init__(self, harness: Harness, generation: int | None = None, sink: str = SINK) -> None:
        self.harness = harness
        self.sink = sink
        self.run = Run(sink, str(uuid.uuid4()), SOURCE.name)
        self.connector = harness.connector(sink)
        harness.made.append(self.connector)
        self.commits_on_driver = self.connector.capabilities().commits_on is CommitsOn.DRIVER
        self.generation = generation or 0
        self.rows_total = 0

    def open(self) -> PlayedStart:
        """Look, then fence."""
        while not self.connector.open(self.run, WRITERS, self.connector.observe(SOURCE)):
            continue
        return self

    def announce(self) -> PlayedStart:
        """Ensure what is missing, announce the run, and get ready to write."""
        for creation in self.harness.creations(self.sink):
            self.connector.ensure(creation.for_source(SOURCE))
        seen = self.connector.observe(SOURCE)
        self.identities = seen.identities()
        history = seen.known
        if self.generation > history.generation:
            history = NO_HISTORY
        self.generation = self.generation or max(1, history.generation)
        self.rows_total = history.rows_total
        ends = {partition: history.epoch_ends().get(partition, 0) for partition in range(SOURCE.partitions)}
        self.announcement = self.record(history.epoch, ends, ends, writers=WRITERS, totals=history.totals())
        self.connector.announce(self.announcement)
        self.factory = self.connector.factory()
        self.connector.sweep()
        return self

    def start(self) -> PlayedStart:
        """Do both."""
        return self.open().announce()

    def record(
        self,
        epoch: int,
        begins: Mapping[int, int],
        ends: Mapping[int, int],
        *,
        writers: Sequence[WriterId] = (),
        totals: Mapping[WriterId, tuple[int, int]] | None = None,
        rows: int = 0,
        rows_total: int = 0,
        dead_total: int = 0,
    ) -> ProgressRecord:
        """Return a record of this run."""
        return ProgressRecord(
            self.generation,
            "owner",
            self.run.id,
            epoch,
            dict(begins),
            dict(ends),
            self.identities,
            checkpoint="checkpoint",
            batch=epoch - 1,
            rows=rows,
            rows_total=rows_total,
            dead_total=dead_total,
            writers=tuple(writers),
            writer_mode="per_partition" if writers else "",
            totals=dict(totals or {}),
        )

    def epoch(self, number: int, ranges: Mapping[int, range], bad: Sequence[int] = ()) -> None:
        """Run an epoch, or run it again: what is committed is skipped, the rest is written."""
        if self.commits_on_driver and self.connector.progress().epoch >= number:
            return
        tasks = [PlayedTask(self, number, partition, ranges, bad) for partition in ranges]
        for task in tasks:
            if not task.is_done():
                task.go_on()
        tokens = [task.token for task in tasks if task.token]
        self.commit(number, ranges, tokens)
        for task in tasks:
            task.writer.close()

    def commit(self, number: int, ranges: Mapping[int, range], tokens: Sequence[Token]) -> ProgressRecord:
        """Commit an epoch on the driver, where that is what the target needs."""
        rows = sum(token.rows for token in tokens)
        record = self.record(
            number, begins(ranges), ends(ranges), rows=rows, rows_total=self.rows_total + rows
        )
        self.connector.commit_epoch(record, tokens)
        self.rows_total += rows
        return record


class PlayedTask:
    """One task of an epoch, that may stop between any two calls.

    :param ranges: of all partitions; the task writes its own.
    :param bad: offsets of records that did not parse.
    :param kept: the writer of an earlier epoch, which is neither prepared nor opened again.
    """

    def __init__(
        self,
        start: PlayedStart,
        epoch: int,
        partition: int,
        ranges: Mapping[int, range],
        bad: Sequence[int] = (),
        *,
        kept: EpochWriter | None = None,
    ) -> None:
        self.start = start
        self.epoch = epoch
        self.partition = partition
        self.ranges = ranges
        self.bad = bad
        self.writer: EpochWriter
        self.token: Token | None = None
        self.record: ProgressRecord | None = None
        self.written = WriteResult(0, 0, 0)
        self._calls = list(CALLS[:-1] if start.commits_on_driver else CALLS)
        if kept is not None:
            self.writer, self._calls = kept, self._calls[2:]

    def is_done(self) -> bool:
        """Open the writer, and return whether what it would write is committed already."""
        self.go_on(until="open")
        last = self.writer.last
        if self.start.commits_on_driver or last is None:
            return False
        return last.to[self.partition] >= self.ranges[self.partition].stop

    def go_on(self, until: str = CALLS[-1]) -> PlayedTask:
        """Make the next calls, up to this one."""
        while self._calls and CALLS.index(self._calls[0]) <= CALLS.index(until):
            getattr(self, f"_{self._calls.pop(0)}")()
        return self

    def go_on_alone(self) -> None:
        """Go on to the end of the epoch, as if there were no other task."""
        self.go_on()
        self.start.commit(self.epoch, self.ranges, [self.token] if self.token else [])

    def _prepare(self) -> None:
        self.writer = self.start.factory.prepare(partition_writer(self.partition))
        self.start.harness.made.append(self.writer)

    def _open(self) -> None:
        self.writer.open()

    def _begin_epoch(self) -> None:
        self.writer.begin_epoch()

    def _write_batch(self) -> None:
        offsets = self.ranges[self.partition]
        middle = (offsets.start + offsets.stop) // 2
        for part in (range(offsets.start, middle), range(middle, offsets.stop)):
            batch = self.start.harness.batch(self.partition, part, [at for at in self.bad if at in part])
            self.written += self.writer.write_batch(batch)

    def _flush(self) -> None:
        self.writer.flush()

    def _pre_commit(self) -> None:
        last, written = self.writer.last, self.written
        self.record = self.start.record(
            self.epoch,
            begins(self.ranges),
            ends(self.ranges),
            rows=written.rows,
            rows_total=(last.rows_total if last else 0) + written.rows,
            dead_total=(last.dead_total if last else 0) + written.dead,
        )
        self.token = self.writer.pre_commit(self.record)

    def _commit_epoch(self) -> None:
        self.writer.commit_epoch()


def begins(ranges: Mapping[int, range]) -> dict[int, int]:
    """Return the first offset of each partition."""
    return {partition: offsets.start for partition, offsets in ranges.items()}


def ends(ranges: Mapping[int, range]) -> dict[int, int]:
    """Return the offset behind each partition's last."""
    return {partition: offsets.stop for partition, offsets in ranges.items()}


def rows_of(*epochs: Mapping[int, range]) -> list[Coordinates]:
    """Return what must be visible after these epochs: each row once."""
    return sorted((partition, at) for ranges in epochs for partition, found in ranges.items() for at in found)


__all__ = [
    "CALLS",
    "DRIVER",
    "SINK",
    "SOURCE",
    "WRITERS",
    "Coordinates",
    "Harness",
    "PlayedStart",
    "PlayedTask",
]
