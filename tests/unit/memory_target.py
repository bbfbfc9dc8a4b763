"""A target in memory, and the epochs and rows that writers of it are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, Token, WriteResult
from airflow_provider_sinks.core.errors import FencedError
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan

TOPIC = Identity("cluster", "topic", "id", 4)
SCHEMA = pa.schema(
    {
        "__sinks_partition": pa.int32(),
        "__sinks_offset": pa.int64(),
        "__sinks_error": pa.string(),
        "__sinks_key": pa.binary(),
        "__sinks_value": pa.binary(),
        "__sinks_raw_key": pa.binary(),
        "__sinks_raw_value": pa.binary(),
        "__sinks_raw_timestamp": pa.int64(),
        "__sinks_raw_headers": pa.string(),
    }
)


@dataclass
class Target:
    """A target in memory: rows and record become visible together. Also the factory of its writers."""

    visible: list[bytes] = field(default_factory=list)
    records: dict[str, ProgressRecord] = field(default_factory=dict)
    opened: int = 0
    answers: bool = True
    loses: bool = False
    taken_over: bool = False
    refuses_late: int = 0

    def prepare(self, writer_id: str) -> MemoryWriter:
        return MemoryWriter(self, writer_id)


class MemoryWriter:
    """A writer of that target."""

    def __init__(self, target: Target, writer_id: str) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self.epoch = 0
        self._target = target
        self._writer_id = writer_id
        self._rows: list[bytes] = []

    def open(self) -> None:
        if self._target.taken_over:
            raise FencedError("a newer start took over")
        self._target.opened += 1
        self.holder_id = f"opened {self._target.opened}"
        self.last = self._target.records.get(self._writer_id)

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self._rows = []

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        assert self.epoch, "a row before begin_epoch"
        values = rows.column("__sinks_value").to_pylist()
        self._rows += values
        return WriteResult(len(values), 0, sum(map(len, values)))

    def flush(self) -> None:
        pass

    def pre_commit(self, record: ProgressRecord) -> Token:
        late, self._rows = self._target.refuses_late, self._rows[self._target.refuses_late :]
        self.last = record.with_set_aside(late)
        self.holder_id += "+"
        return Token(self._writer_id, "", self.last.rows)

    def commit_epoch(self) -> None:
        assert self.last is not None
        if not self._target.loses:
            self._target.visible += self._rows
            self._target.records[self._writer_id] = self.last
        self._rows = []
        if not self._target.answers:
            raise InDoubtError("no answer")

    def rollback_epoch(self) -> None:
        self._rows = []

    def close(self) -> None:
        self._rows = []


def record(begin: int, end: int, epoch: int = 7) -> ProgressRecord:
    """The record of an epoch over the range [begin, end) of partition 0."""
    return ProgressRecord(
        generation=1,
        owner="us",
        run="run",
        epoch=epoch,
        from_={0: begin},
        to={0: end},
        identities=Identities(TOPIC, TOPIC, TOPIC),
    )


def plan(
    target: Target,
    begin: int = 0,
    end: int = 10,
    *,
    known: int | None = None,
    totals: tuple[int, int] = (0, 0),
    single: bool = False,
    demand_source: Callable[[Identity], None] = lambda _: None,
) -> EpochPlan:
    """An epoch over [begin, end) of partition 0, before which everything is committed."""
    return EpochPlan(
        sink="orders",
        record=record(begin, end),
        single_writer="all" if single else None,
        source_topic="orders-in",
        known={0: begin if known is None else known},
        totals={"all" if single else "p0": totals},
        holders={},
        newest=None,
        expected=("all",) if single else ("p0",),
        has_dead_letters=False,
        dead_letter_example="{topic: ...}",
        step_rows=1_000_000,
        step_seconds=30.0,
        step_bytes=10**9,
        demand_source=demand_source,
        factory=target,
    )


def batch(offsets: Sequence[int], partition: int = 0, error: str | None = None) -> pa.RecordBatch:
    """Rows of these source offsets; the value of a row is its offset."""
    rows = [
        {
            "__sinks_partition": partition,
            "__sinks_offset": at,
            "__sinks_error": error,
            "__sinks_value": b"%d" % at,
        }
        for at in offsets
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def written(target: Target) -> list[int]:
    return [int(value) for value in target.visible]
