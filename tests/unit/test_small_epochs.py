"""Epochs that the driver writes while their rows still come: what commits when, and what never does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.streaming import held_writers, small_epochs
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.measured_input import LARGE
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from tests.unit.memory_target import Target, batch, plan, written

_SECONDS = 10.0


class BrokenStreamError(Exception):
    """What reading Spark's result ends with."""


Rows = tuple[int, pa.RecordBatch]
"""Some rows of a task of Spark's."""


def marked(
    offsets: Sequence[int], partition: int = 0, *, is_large: bool = False, task: int | None = None
) -> Rows:
    """Rows as they come: with a mark for each, and each source partition by a task of its own."""
    found = batch(offsets, partition).append_column(LARGE, pa.array([is_large] * len(offsets)))
    return partition if task is None else task, found


def merged(*parts: Rows) -> Rows:
    """One batch with the rows of several partitions."""
    (found,) = pa.Table.from_batches([batch for _, batch in parts]).combine_chunks().to_batches()
    return parts[0][0], found


@dataclass
class Epoch:
    """An epoch of offsets 0 to 9 of two partitions, whose rows come as they are told to."""

    patched: pytest.MonkeyPatch
    target: Target = field(default_factory=Target)

    @property
    def plan(self) -> EpochPlan:
        usual = plan(self.target)
        record = replace(usual.record, from_={0: 0, 1: 0}, to={0: 10, 1: 10})
        return replace(usual, record=record, known={0: 0, 1: 0}, totals={}, expected=("p0", "p1"))

    def write(self, coming: Callable[[], Iterator[Rows]], *, is_first: bool = False) -> list[TaskReport]:
        self.patched.setattr(small_epochs, "as_tasks_end", lambda _: coming())
        return small_epochs.write_here(self.plan, None, is_first=is_first)  # type: ignore[arg-type]

    def commits(self, writer: str) -> bool:
        """Wait until a writer has committed, and not for ever."""
        until = time.monotonic() + _SECONDS
        while writer not in self.target.records and time.monotonic() < until:
            time.sleep(0.005)
        return writer in self.target.records


@pytest.fixture
def epoch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Epoch]:
    """An epoch of a driver that holds no writer yet."""
    held_writers.forget_all()
    yield Epoch(monkeypatch)
    held_writers.forget_all()


def _outcomes(reports: list[TaskReport]) -> dict[str, str]:
    return {report.writer: report.outcome for report in reports}


@pytest.mark.parametrize("is_first", [False, True], ids=["warm", "first of the run"])
def test_a_writer_commits_while_the_rows_of_another_one_still_come(epoch: Epoch, is_first: bool) -> None:
    seen: list[set[str]] = []

    def coming() -> Iterator[Rows]:
        yield marked([0, 1])
        yield marked([9])
        seen.append(set(epoch.target.records))
        yield marked([0], partition=1)
        assert epoch.commits("p0")
        seen.append(set(epoch.target.records))
        yield marked([5], partition=1)

    reports = epoch.write(coming, is_first=is_first)

    assert seen == [set(), {"p0"}]
    assert _outcomes(reports) == {"p0": Outcome.COMMITTED, "p1": Outcome.COMMITTED}
    assert sorted(written(epoch.target)) == [0, 0, 1, 5, 9]


def test_of_a_task_that_reads_two_partitions_none_is_whole_before_the_other(epoch: Epoch) -> None:
    seen = []

    def coming() -> Iterator[Rows]:
        yield merged(marked([0]), marked([0], 1))
        yield marked([1], 0)
        time.sleep(0.05)
        seen.append(dict(epoch.target.records))

    reports = epoch.write(coming)

    assert seen == [{}]
    assert [(report.writer, report.rows) for report in reports] == [("p0", 2), ("p1", 1)]


@pytest.mark.parametrize("is_first", [False, True], ids=["warm", "first of the run"])
def test_what_is_not_whole_when_the_rows_break_off_commits_nothing(epoch: Epoch, is_first: bool) -> None:
    def coming() -> Iterator[Rows]:
        yield marked([0, 9])
        yield marked([0, 9], partition=1)
        raise BrokenStreamError

    with pytest.raises(BrokenStreamError):
        epoch.write(coming, is_first=is_first)

    assert epoch.target.records.keys() == {"p0"}
    assert written(epoch.target) == [0, 9]
    again = epoch.write(lambda: iter([marked([0, 9]), marked([0, 9], partition=1)]))
    assert _outcomes(again) == {"p0": Outcome.SKIPPED, "p1": Outcome.COMMITTED}
    assert written(epoch.target) == [0, 9, 0, 9]


def test_a_large_row_ends_its_own_task_and_no_other(epoch: Epoch) -> None:
    rows = [marked([0]), marked([0], 1), marked([1], 1, is_large=True), marked([2], 1)]

    reports = epoch.write(lambda: iter(rows))

    assert _outcomes(reports) == {"p0": Outcome.COMMITTED, "p1": Outcome.LARGE_ROWS}
    assert epoch.target.records.keys() == {"p0"}


def test_a_partition_that_two_tasks_read_is_refused(epoch: Epoch) -> None:
    left = [marked([1], 1), marked([2], 1)]

    def coming() -> Iterator[Rows]:
        yield from (marked([0]), marked([0], 1), marked([1], task=2))
        while left:  # Spark's job would wait for whoever does not read on
            yield left.pop(0)

    with pytest.raises(JobFailedError) as refused:
        epoch.write(coming)

    assert refused.value.primary == 'tasks of sink "orders" do not read one source partition each'
    assert "Rows of writer p0 came of two tasks in epoch 7" in refused.value.detail
    assert refused.value.hint == "Use `writers: single` for this plan."
    assert left == []


def test_rows_of_a_partition_without_a_range_are_refused(epoch: Epoch) -> None:
    with pytest.raises(JobFailedError) as refused:
        epoch.write(lambda: iter([marked([0], partition=2)]))

    assert "come from source partitions without a range" in refused.value.primary
    assert epoch.target.records == {}


def test_one_writer_of_all_rows_commits_behind_the_last_one(epoch: Epoch) -> None:
    single = replace(epoch.plan, single_writer="all", expected=("all",))
    seen = []

    def coming() -> Iterator[Rows]:
        yield marked([0])
        yield marked([0], partition=1)
        time.sleep(0.05)
        seen.append(dict(epoch.target.records))

    epoch.patched.setattr(Epoch, "plan", single)
    (report,) = epoch.write(coming)

    assert seen == [{}]
    assert (report.outcome, report.rows) == (Outcome.COMMITTED, 2)


def test_writers_without_a_row_open_nothing(epoch: Epoch) -> None:
    reports = epoch.write(lambda: iter([marked([]), marked([3], partition=1)]))

    assert _outcomes(reports) == {"p1": Outcome.COMMITTED}
    assert epoch.target.opened == 1
