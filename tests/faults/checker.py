"""Judges an output against its source: missing, doubled, foreign, altered, out of order, part of an epoch.

It knows no sink: rows in, records out. :mod:`test_checker` shows that it catches each kind of wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId
from tests.faults.feed import Row
from tests.faults.topics import Record

_SHOWN = 5


@dataclass(frozen=True)
class Verdict:
    """What is wrong with an output, by the ids of its rows; doubled ones as often as they are extra."""

    rows: int
    missing: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    out_of_order: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[str, ...]:
        """Every id that has something wrong with it."""
        return self.missing + self.duplicates + self.foreign + self.altered + self.out_of_order

    def __str__(self) -> str:
        kinds = [field.name for field in fields(self)][1:]
        counts = ", ".join(f"{kind.replace('_', ' ')} {len(getattr(self, kind))}" for kind in kinds)
        shown = ", ".join(self.wrong[:_SHOWN])
        return f"rows {self.rows:,}, {counts}" + (f" (such as {shown})" if shown else "")


def judge(output: Sequence[Record], source: Iterable[Row]) -> Verdict:
    """Compare the records of a target with the rows of its source.

    :param output: JSON values that carry the row's ``id`` and ``seq``, keyed by its ``key``.
    """
    wanted = {row.id: row for row in source}
    read = [(record, json.loads(record.value or b"{}")) for record in output]
    seen = Counter(str(value.get("id")) for _, value in read)
    return Verdict(
        rows=len(read),
        missing=tuple(sorted(wanted.keys() - seen.keys())),
        duplicates=tuple((seen - Counter(set(seen))).elements()),
        foreign=tuple(sorted(seen.keys() - wanted.keys())),
        altered=tuple(v["id"] for r, v in read if v.get("id") in wanted and not _same(r, v, wanted[v["id"]])),
        out_of_order=tuple(_out_of_order(read)),
    )


def _same(record: Record, value: Mapping[str, object], row: Row) -> bool:
    return record.key == row.key.encode() and (value["key"], value["seq"]) == (row.key, row.seq)


def _out_of_order(read: Iterable[tuple[Record, Mapping[str, object]]]) -> Iterator[str]:
    """Yield rows that stand behind a later row of their key, or not in their key's partition."""
    newest: dict[bytes | None, tuple[int, int]] = {}
    for record, value in read:
        seq = value.get("seq")
        assert isinstance(seq, int)
        place = newest.setdefault(record.key, (record.partition, -1))
        if record.partition != place[0] or seq < place[1]:
            yield str(value["id"])
        newest[record.key] = (place[0], max(seq, place[1]))


def transactions(output: Sequence[Record]) -> list[list[Record]]:
    """Cut the output of one writer into one partition where its transactions end.

    The marker that ends a transaction takes an offset that no reader gets: a gap stands between two of them.
    """
    assert len({record.partition for record in output}) <= 1
    runs: list[list[Record]] = []
    for record in output:
        if not runs or record.offset != runs[-1][-1].offset + 1:
            runs.append([])
        runs[-1].append(record)
    return runs


def torn(
    output: Sequence[Record],
    history: Sequence[tuple[WriterId, ProgressRecord]],
    expected: Callable[[ProgressRecord], Counter[str]],
    identify: Callable[[Record], str],
) -> list[str]:
    """Return what is wrong between the transactions that became visible and the epochs that were recorded.

    :param output: all records of a ``single`` sink with one target partition.
    :param history: every progress record, oldest first.
    :param expected: what an epoch should have written, given the record of it.
    """
    epochs = [record for writer, record in history if writer != DRIVER and record.rows]
    visible = transactions(output)
    wrong = [
        f"epoch {epoch.epoch} is {epoch.from_} to {epoch.to}, {epoch.rows} rows; "
        f"visible are {len(run)}, {_difference(Counter(map(identify, run)), expected(epoch))}"
        for run, epoch in zip(visible, epochs, strict=False)
        if len(run) != epoch.rows or Counter(map(identify, run)) != expected(epoch)
    ]
    if len(visible) != len(epochs):
        wrong.append(f"{len(visible)} transactions are visible, {len(epochs)} epochs are recorded")
    return wrong


def _difference(seen: Counter[str], wanted: Counter[str]) -> str:
    return f"missing {list(wanted - seen)[:_SHOWN]}, extra {list(seen - wanted)[:_SHOWN]}"


def regressions(history: Sequence[tuple[WriterId, ProgressRecord]]) -> list[str]:
    """Return where a writer's record lies behind an older one of it, or does not follow it."""
    wrong = []
    newest: dict[WriterId, ProgressRecord] = {}
    for writer, record in history:
        old = newest.get(writer)
        if old is not None and _falls(old, record):
            wrong.append(
                f"{writer}: epoch {old.epoch} {old.to} is followed by epoch {record.epoch} {record.to}"
            )
        newest[writer] = record
    return wrong


def _falls(old: ProgressRecord, new: ProgressRecord) -> bool:
    if new.generation != old.generation:
        return new.generation < old.generation
    back = any(at < old.to.get(partition, 0) for partition, at in new.to.items())
    return back or new.epoch < old.epoch or new.rows_total < old.rows_total
