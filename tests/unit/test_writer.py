"""Which rows a writer writes, and when it commits: the rules of ``per_partition`` and ``single``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark import TaskContext

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming import daemon, held_writers
from airflow_provider_sinks.streaming.measured_input import LARGE, MeasuredInput
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from airflow_provider_sinks.streaming.writer import run_task, write_epoch
from tests.unit.memory_target import SCHEMA, Target, batch, plan, record, written


def named(names: Sequence[str]) -> Callable[..., MeasuredInput]:
    """What gives the columns of a task their names."""
    return partial(MeasuredInput, names=names)


@pytest.fixture(autouse=True)
def _proved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test is a new worker process that runs the sink's daemon."""
    monkeypatch.setattr(daemon, "input_is_proved", lambda: True)
    held_writers.forget_all()
    yield
    held_writers.forget_all()


def task(target: Target, *batches: pa.RecordBatch, **options: object) -> TaskReport:
    return run_task(plan(target, **options), iter(batches))  # type: ignore[arg-type]


def test_rows_and_record_become_visible_together() -> None:
    target = Target()

    report = task(target, batch([0, 1, 2]), batch([3, 9]))

    assert (report.outcome, report.rows, report.rows_total) == (Outcome.COMMITTED, 5, 5)
    assert written(target) == [0, 1, 2, 3, 9]
    assert target.records["p0"].to == {0: 10}


def test_a_replayed_epoch_is_skipped() -> None:
    target = Target(records={"p0": replace(record(0, 10), rows_total=5)})

    report = task(target, batch([0, 1]), batch([9]))

    assert (report.outcome, report.rows, report.rows_total) == (Outcome.SKIPPED, 0, 5)
    assert written(target) == []


def test_only_the_rows_behind_the_position_are_written_again() -> None:
    target = Target(records={"p0": record(0, 4)})

    task(target, batch([0, 2, 3, 4]), batch([5]))

    assert written(target) == [4, 5]


def test_several_rows_of_one_source_record_stay_together() -> None:
    target = Target(records={"p0": record(0, 4)})

    task(target, batch([3, 3, 4, 4]), batch([4, 5]))

    assert written(target) == [4, 4, 4, 5]


@pytest.mark.parametrize("single", [False, True], ids=["per_partition", "single"])
@pytest.mark.parametrize(
    "left", [replace(record(0, 6, epoch=5), rows_total=6), None], ids=["less", "nothing"]
)
def test_a_target_that_forgot_a_commit_of_this_run_is_not_written_to(
    left: ProgressRecord | None, single: bool
) -> None:
    target = Target(records={"all" if single else "p0": left} if left else {})

    report = task(target, batch([10, 11]), begin=10, end=20, known=10, totals=(10, 0), single=single)

    assert report.outcome == Outcome.REFUSED
    assert report.primary == 'progress of sink "orders" was rolled back while the sink ran'
    assert "had committed 10 rows and 0 dead letters" in report.detail
    assert written(target) == []


def test_a_target_that_forgot_dead_letters_of_this_run_is_not_written_to() -> None:
    target = Target(records={"p0": replace(record(0, 10), rows_total=8, dead_total=1)})

    assert task(target, batch([10]), begin=10, end=20, totals=(8, 2)).outcome == Outcome.REFUSED


def test_an_epoch_without_a_row_of_a_writer_leaves_no_record_of_it_and_that_is_no_loss() -> None:
    target = Target(records={"p0": replace(record(0, 6), rows_total=6)})

    assert task(target, batch([10, 11]), begin=10, end=20, totals=(6, 0)).outcome == Outcome.COMMITTED


def test_a_gap_stops_the_driver() -> None:
    target = Target()

    report = task(target, batch([10, 11]), begin=10, end=20, known=8)

    assert report.outcome == Outcome.STOPPED
    assert "would leave a gap in orders-in/0" in report.primary
    assert "below offset 8; this epoch starts at 10" in report.detail
    assert written(target) == []


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([batch([0]), batch([1], partition=1)], id="another partition"),
        pytest.param([batch([5]), batch([4])], id="falling between batches"),
        pytest.param([batch([5, 4])], id="falling within a batch"),
    ],
)
def test_a_task_that_does_not_read_one_partition_in_order_stops_the_driver(
    batches: list[pa.RecordBatch],
) -> None:
    target = Target()

    report = task(target, *batches)

    assert report.outcome == Outcome.STOPPED
    assert "does not read one source partition in order" in report.primary
    assert written(target) == []


def test_a_row_outside_of_the_range_stops_the_driver() -> None:
    target = Target()

    report = task(target, batch([25]), begin=10, end=20)

    assert (report.outcome, written(target)) == (Outcome.STOPPED, [])


def test_a_task_without_rows_opens_nothing() -> None:
    target = Target()

    report = task(target, batch([]))

    assert (report.outcome, target.opened) == (Outcome.NOTHING, 0)


def test_a_cut_input_commits_nothing() -> None:
    target = Target()

    def cut() -> Iterator[pa.RecordBatch]:
        yield batch([0, 1])
        raise daemon.CutInputError("cut")

    with pytest.raises(daemon.CutInputError):
        run_task(plan(target), cut())

    assert (written(target), target.records) == ([], {})


def test_nothing_is_written_under_a_daemon_that_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "input_is_proved", lambda: False)
    target = Target()

    numbered = batch([0]).rename_columns([f"column{number}" for number in range(len(SCHEMA))])
    (only,) = write_epoch(plan(target), named(SCHEMA.names))([numbered])
    report = TaskReport.from_json(only.column("report")[0].as_py())

    assert (report.outcome, written(target)) == (Outcome.STOPPED, [])
    assert "spark.python.daemon.module" in report.hint


def test_a_record_that_does_not_parse_stops_the_driver_and_is_named() -> None:
    target = Target()

    report = task(target, batch([0, 1]), batch([2], error="not JSON"))

    assert (report.outcome, written(target)) == (Outcome.STOPPED, [])
    assert report.detail == "Record orders-in/0 at offset 2: not JSON"
    assert "dead_letter" in report.hint


def test_a_newer_start_is_reported_as_fenced() -> None:
    target = Target(taken_over=True)

    report = task(target, batch([0]))

    assert (report.outcome, report.primary) == (Outcome.FENCED, "a newer start took over")


def replaced(_recorded: Identity) -> None:
    raise RefusedError("source topic was replaced")


def test_rows_of_another_source_than_the_recorded_one_are_not_committed() -> None:
    target = Target()

    report = task(target, batch([0, 1]), demand_source=replaced)

    assert (report.outcome, report.primary) == (Outcome.REFUSED, "source topic was replaced")
    assert (written(target), target.records) == ([], {})


def test_the_source_is_looked_at_behind_the_last_row_of_each_step() -> None:
    target, looks = Target(), []
    stepping = replace(plan(target, demand_source=lambda _: looks.append(written(target))), step_rows=2)

    run_task(stepping, iter([batch([0, 1]), batch([2, 3])]))

    assert looks == [[], [0, 1]]


def test_a_commit_without_an_answer_that_happened_counts() -> None:
    target = Target(answers=False)

    report = task(target, batch([0, 1]))

    assert (report.outcome, report.rows, target.opened) == (Outcome.COMMITTED, 2, 2)
    assert written(target) == [0, 1]


def test_rows_that_are_set_aside_late_count_as_dead_letters_also_without_an_answer() -> None:
    target = Target(answers=False, refuses_late=2)

    report = task(target, batch([0, 1, 2, 3]))

    assert written(target) == [2, 3]
    assert (report.outcome, report.rows, report.dead) == (Outcome.COMMITTED, 2, 2)
    assert (report.rows_total, report.dead_total) == (2, 2)


def test_a_commit_without_an_answer_that_did_not_happen_is_repeated() -> None:
    target = Target(answers=False, loses=True)

    with pytest.raises(InDoubtError, match="did not happen"):
        task(target, batch([0, 1]))

    assert written(target) == []


def test_the_rest_of_a_long_range_is_of_its_epoch_behind_a_commit_without_an_answer() -> None:
    target = Target(answers=False)
    stepping = replace(plan(target), step_rows=2)

    run_task(stepping, iter([batch([0, 1]), batch([2])]))

    assert written(target) == [0, 1, 2]


def test_a_long_range_is_committed_in_steps_between_source_records() -> None:
    target = Target()
    stepping = replace(plan(target), step_rows=2)

    report = run_task(stepping, iter([batch([0, 1, 2]), batch([2, 3]), batch([4])]))

    assert (report.rows, written(target)) == (6, [0, 1, 2, 2, 3, 4])
    assert target.records["p0"].to == {0: 10}


def test_a_range_of_many_bytes_is_committed_in_steps_too() -> None:
    target, looks = Target(), []
    stepping = replace(plan(target, demand_source=lambda _: looks.append(written(target))), step_bytes=3)

    run_task(stepping, iter([batch([0, 1]), batch([2]), batch([3])]))

    assert looks == [[], [0, 1, 2]]


def test_a_step_says_the_offset_after_its_last_row() -> None:
    target = Target()
    stepping = replace(plan(target), step_rows=2)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield batch([0, 1, 2])
        yield batch([3])
        raise daemon.CutInputError("cut")

    with pytest.raises(daemon.CutInputError):
        run_task(stepping, interrupted())

    assert (written(target), target.records["p0"].to) == ([0, 1, 2], {0: 3})


def test_the_holder_of_the_last_commit_goes_on_without_asking() -> None:
    target = Target()
    first = task(target, batch([0]))

    again = replace(plan(target, begin=10, end=20), holders={"p0": first.holder})
    run_task(again, iter([batch([10])]))

    assert (target.opened, written(target)) == (1, [0, 10])


def test_a_holder_of_an_older_commit_opens_anew() -> None:
    target = Target()
    task(target, batch([0]))

    again = replace(plan(target, begin=10, end=20), holders={"p0": "somebody else committed since"})
    run_task(again, iter([batch([10])]))

    assert target.opened == 2


def test_a_repeated_attempt_opens_anew_because_the_failed_one_may_have_opened_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Target()
    first = task(target, batch([0]))
    again = replace(plan(target, begin=10, end=20), holders={"p0": first.holder})
    second_attempt = SimpleNamespace(attemptNumber=lambda: 1, partitionId=lambda: 0)
    monkeypatch.setattr(TaskContext, "get", lambda: second_attempt)

    list(write_epoch(again, named(SCHEMA.names))(iter([batch([10])])))

    assert (target.opened, written(target)) == (2, [0, 10])


def test_single_skips_exactly_the_recorded_range() -> None:
    target = Target(records={"all": record(0, 10)})

    report = task(target, batch([0, 1]), single=True)

    assert (report.outcome, written(target)) == (Outcome.SKIPPED, [])


def test_single_skips_what_the_writers_of_partitions_have_committed_whole() -> None:
    target = Target()

    report = task(target, batch([0, 1]), single=True, known=10)

    assert (report.outcome, written(target)) == (Outcome.SKIPPED, [])


def test_single_stops_where_the_writers_of_partitions_have_committed_a_part() -> None:
    target = Target()

    report = task(target, batch([0, 1]), single=True, known=4)

    assert (report.outcome, written(target)) == (Outcome.STOPPED, [])


def test_single_writes_an_epoch_without_new_records_behind_what_is_committed() -> None:
    target = Target(records={"all": record(0, 10)})

    report = task(target, batch([9]), single=True, begin=10, end=10, known=10)

    assert (report.outcome, written(target)) == (Outcome.COMMITTED, [9])


def test_single_stops_when_the_record_overlaps_the_range() -> None:
    target = Target(records={"all": record(0, 5)})

    report = task(target, batch([0, 1]), single=True)

    assert (report.outcome, written(target)) == (Outcome.STOPPED, [])
    assert "overlaps what is committed" in report.primary


def test_single_writes_a_second_epoch_over_the_same_empty_range() -> None:
    target = Target(records={"all": replace(record(10, 10), batch=4)})

    later = plan(target, begin=10, end=10, single=True)
    report = run_task(replace(later, record=replace(later.record, batch=5)), iter([batch([3])]))

    assert (report.outcome, written(target)) == (Outcome.COMMITTED, [3])


def test_single_takes_rows_of_all_partitions_in_any_order() -> None:
    target = Target(records={"all": record(0, 5, epoch=6)})

    report = task(target, batch([9]), batch([7], partition=1), begin=5, single=True)

    assert (report.outcome, written(target)) == (Outcome.COMMITTED, [9, 7])


def test_a_row_that_was_left_out_commits_nothing_of_its_task() -> None:
    target = Target()
    names = [*SCHEMA.names, LARGE]

    def marked(offsets: list[int], is_large: bool) -> pa.RecordBatch:
        whole = batch(offsets).append_column(LARGE, pa.array([is_large] * len(offsets)))
        return whole.rename_columns([f"column{number}" for number in range(len(names))])

    (only,) = write_epoch(plan(target), named(names))([marked([0, 1], False), marked([2, 3], True)])
    report = TaskReport.from_json(only.column("report")[0].as_py())

    assert (report.writer, report.outcome, report.rows) == ("p0", Outcome.LARGE_ROWS, 0)
    assert (written(target), target.records) == ([], {})
    assert held_writers.holder_id(("orders", "run", "p0")) is None
