"""What is found in a sink's output after its faults."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_provider_sinks.core.progress.record import ProgressRecord
from tests.faults.checker import Verdict
from tests.faults.feed import Row
from tests.faults.topics import Record

ROUNDS = int(os.environ.get("FAULT_ROUNDS") or 1)
"""Random kills in each chapter."""
FULL_COUNT = 20

WINDOW_SECONDS = 2
_LocatedRow = tuple[int, int, Row]


@dataclass(frozen=True)
class Outcome:
    """What is found in a sink's output.

    :param aborted: what was written and never became visible: kills did hit open transactions.
    :param torn: parts of epochs that became visible.
    :param regressions: where progress went backwards.
    :param vanished: what an onlooker saw during the faults and was not there, or was older, afterwards.
    :param aborted_what: what ``aborted`` counts.
    :param versions: how many versions of the lookup table the output was joined with.
    :param kills: one line for each since the last look.
    :param seconds: how long they took.
    """

    verdict: Verdict
    aborted: int
    epochs: int
    torn: tuple[str, ...]
    regressions: tuple[str, ...]
    vanished: int
    versions: int
    aborted_what: str = "aborted rows"
    kills: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def is_exactly_once(self) -> bool:
        """Whether nothing at all is wrong."""
        return not (self.verdict.wrong or self.torn or self.regressions or self.vanished)

    def __str__(self) -> str:
        done = f"{len(self.kills)} kills in {self.seconds:.0f} s, {self.epochs} epochs since the first"
        counts = {
            "parts of epochs": len(self.torn),
            "vanished": self.vanished,
            "progress backwards": len(self.regressions),
            self.aborted_what: self.aborted,
            "lookup versions": self.versions,
        }
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        return "\n    ".join([done, str(self.verdict), found])

    def details(self) -> str:
        """Return everything that helps to find out what went wrong."""
        return "\n".join([str(self), *self.torn, *self.regressions, *self.kills])


def identify(record: Record) -> str:
    """Return what tells a record of an output from every other one."""
    value = json.loads(record.value or b"{}")
    return str(value["id"]) if "id" in value else f"{value['key']} {value['start']} {value['n']}"


def rows_of_epochs(located: Sequence[_LocatedRow]) -> Callable[[ProgressRecord], Counter[str]]:
    """Return what tells the rows that an epoch of a row-wise sink must write."""
    by_partition: dict[int, tuple[list[int], list[str]]] = {}
    for partition, at, row in located:
        offsets, ids = by_partition.setdefault(partition, ([], []))
        offsets.append(at)
        ids.append(row.id)

    def expected(record: ProgressRecord) -> Counter[str]:
        found: Counter[str] = Counter()
        for partition, (offsets, ids) in by_partition.items():
            begin, end = record.from_.get(partition, 0), record.to.get(partition, 0)
            found.update(ids[bisect_left(offsets, begin) : bisect_left(offsets, end)])
        return found

    return expected


def window_changes(located: Sequence[_LocatedRow]) -> Callable[[ProgressRecord], Counter[str]]:
    """Return what tells the counts that an epoch of windowed counts must write: those that changed in it."""

    def expected(record: ProgressRecord) -> Counter[str]:
        return Counter(_changes(located, record))

    return expected


def _changes(located: Sequence[_LocatedRow], record: ProgressRecord) -> Iterator[str]:
    until = [(p, at, row) for p, at, row in located if at < record.to.get(p, 0)]
    counts = Counter(window_of(row) for _, _, row in until)
    for window in {window_of(row) for p, at, row in until if at >= record.from_.get(p, 0)}:
        yield f"{window} {counts[window]}"


def judge_windows(output: Sequence[Record], rows: Iterable[Row]) -> Verdict:
    """Judge the counts of windows: each rises, none is written twice, the last one is the true one."""
    wanted = Counter(map(window_of, rows))
    newest: Counter[str] = Counter()
    repeated = []
    for record in output:
        window, _, count = identify(record).rpartition(" ")
        if int(count) <= newest[window]:
            repeated.append(f"{window} {count}")
        newest[window] = max(newest[window], int(count))
    return Verdict(
        rows=len(output),
        missing=tuple(sorted(wanted - newest)),
        duplicates=tuple(repeated),
        foreign=tuple(sorted(newest - wanted)),
    )


def window_of(row: Row) -> str:
    """Return key and start of a row's window, as the sink writes it."""
    at = datetime.fromisoformat(row.at)
    start = at.replace(second=at.second - at.second % WINDOW_SECONDS, microsecond=0)
    return f"{row.key} {start.strftime('%Y-%m-%dT%H:%M:%S.000000Z')}"
