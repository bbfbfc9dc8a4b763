"""The arithmetic of the benchmark, and how it judges rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.peers import arms, plan, report, targets
from tests.bench.peers.figures import Audit, Figures, Spread, percentile, window
from tests.bench.peers.kafka_arms import consumed_per_second
from tests.bench.peers.meter import Sample
from tests.bench.peers.reader import Examiner
from tests.bench.peers.results import Results, Run
from tests.bench.peers.stored import keep, stored
from tests.bench.peers.workloads import KEYS, Copy, Enrich, Workload, key, rows_out

COPY, ENRICH = Copy(100), Enrich()
STEADY = "steady: copy, 100 B, 4 partitions"


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: int) -> None:
    assert percentile(list(range(1, 101)), share) == expected


def test_the_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 0.99) == 7.0


def test_start_and_end_of_a_run_are_no_part_of_its_rate() -> None:
    """Ten rows a millisecond, but a first row that comes ten seconds earlier and a last one ten later."""
    steady = {20_000 + ms: 10 for ms in range(1_000)}

    warm = window({10_000: 1, **steady, 31_000: 1})

    assert warm is not None
    assert warm.rows_per_second == pytest.approx(10_000)


def test_a_rate_counts_what_was_appended_behind_its_start() -> None:
    warm = window({1_000: 100, 2_000: 100, 3_000: 100, 4_000: 100, 5_000: 100})

    assert warm is not None
    assert (warm.start_seconds, warm.end_seconds, warm.rows) == (1.0, 5.0, 400)


def test_a_steady_rate_begins_behind_the_cold_rows() -> None:
    appended = {**dict.fromkeys(range(500), 1), **{500 + ms: 10 for ms in range(50)}}

    warm = window(appended, cold_rows=500)

    assert warm is not None
    assert warm.rows_per_second == pytest.approx(10_000)


@pytest.mark.parametrize("appended", [{}, {1_000: 5_000}])
def test_rows_of_one_moment_have_no_rate(appended: dict[int, int]) -> None:
    assert window(appended) is None


def test_a_spread_leaves_out_what_was_not_measured() -> None:
    assert Spread.of([3.0, None, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([None]) is None


def test_a_sample_between_two_is_in_proportion() -> None:
    middle = Sample(10.0, arm=1.0, machine=4.0).between(Sample(12.0, arm=3.0, machine=8.0), 11.0)

    assert (middle.arm, middle.machine) == (2.0, 6.0)


def judged(workload: Workload, rows: int, numbers: list[int], partitions: int = 4) -> Audit:
    examiner = Examiner(workload, rows)
    for number in numbers:
        examiner.see(key(number), _after(workload, number), number % partitions)
    return examiner.result()


def _after(workload: Workload, number: int) -> bytes:
    if isinstance(workload, Copy):
        return workload.value(number)
    user = number % 1_000
    region, price = f"region-{user % 16}", number % 1_000 / 8
    return f'{{"id":{number},"userid":"user-{user:06d}","region":"{region}","price":{price}}}'.encode()


@pytest.mark.parametrize("workload", [COPY, ENRICH], ids=["copy", "enrich"])
def test_rows_that_all_arrive_in_order_are_right(workload: Workload) -> None:
    numbers = [number for number in range(5_000) if workload.arrives(number)]

    assert judged(workload, 5_000, numbers) == Audit(len(numbers), missing=0, doubled=0)
    assert rows_out(workload, 5_000) == len(numbers)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param([0, 2], Audit(2, missing=1, doubled=0), id="one-is-missing"),
        pytest.param([0, 1, 1, 2], Audit(4, missing=0, doubled=1), id="one-is-doubled"),
        pytest.param([0, 1, 2, 3], Audit(4, missing=0, doubled=0, wrong=1), id="one-is-nobodys"),
    ],
)
def test_each_wrong_row_is_found(numbers: list[int], expected: Audit) -> None:
    assert judged(COPY, 3, numbers) == expected
    assert not expected.is_right


def test_rows_of_one_key_must_be_in_order() -> None:
    numbers = [*range(KEYS), KEYS + 7]
    swapped = [KEYS + 7 if number == 7 else 7 if number == KEYS + 7 else number for number in numbers]

    assert judged(COPY, KEYS + 8, numbers).out_of_order == 0
    assert judged(COPY, KEYS + 8, swapped).out_of_order == 1


def test_rows_of_one_key_must_be_in_one_partition() -> None:
    examiner = Examiner(COPY, KEYS + 1)
    examiner.see(key(0), COPY.value(0), 0)
    examiner.see(key(KEYS), COPY.value(KEYS), 1)

    assert examiner.result().out_of_order == 1


def test_a_wrong_value_and_a_wrong_key_are_found() -> None:
    examiner = Examiner(COPY, 1)
    examiner.see(b"another", COPY.value(0), 0)
    torn = Examiner(COPY, 1)
    torn.see(key(0), COPY.value(0)[:-1] + b"!", 0)

    assert examiner.result().wrong == torn.result().wrong == 1


def test_rows_without_numbers_are_counted() -> None:
    examiner = Examiner(None, 3)
    examiner.see(None, b"anything", 0)

    assert examiner.result() == Audit(1, missing=2, doubled=0)


def test_the_lines_of_kafkas_consumer_tool_are_read() -> None:
    lines = [
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, ...",
        "2026-11-22 10:00:00:000, 2026-11-22 10:00:04:000, 95, 24, 1000, 250.0, 3000, 1000, 95.3, 9.5",
    ]

    assert consumed_per_second(lines) == 9.5
    assert consumed_per_second(lines[:1]) is None


def figures(rows_per_second: float | None) -> Figures:
    return Figures(rows_per_second, 1.0, 1.0, 1.0, 1.0, 1.0, 0, 0, 0.0, Audit(1, 0, 0))


def results(ours: list[float | None], spark: list[float | None]) -> Results:
    runs = [
        Run(STEADY, arm.name, number, figures(rate) if rate else None, "" if rate else "it fell over")
        for arm, rates in ((arms.OURS, ours), (arms.SPARK, spark))
        for number, rate in enumerate(rates, 1)
    ]
    return Results(runs)


def test_ratios_are_of_one_round() -> None:
    found = results([100.0, None, 300.0], [200.0, 100.0, 100.0]).ratio(
        STEADY, (arms.OURS.name, arms.SPARK.name), targets.rate
    )

    assert found == Spread(1.75, 0.5, 3.0)


def test_sittings_are_told_together_and_a_ratio_is_of_one_of_them(tmp_path: Path) -> None:
    sittings = [
        replace(results([100.0], [50.0]), bytes_after=[{100: 7}]),
        results([300.0, 90.0], [100.0, None]),
    ]
    folders = [tmp_path / name for name in "ab"]
    for folder, found in zip(folders, sittings, strict=True):
        folder.mkdir()
        keep(folder, found)

    together = stored(folders)

    assert [run.number for run in together.runs] == [1, 1, 2, 3, 2, 3]
    assert together.ratio(STEADY, (arms.OURS.name, arms.SPARK.name), targets.rate) == Spread(2.5, 2.0, 3.0)
    assert together.bytes_after == [{100: 7}]


def test_a_run_with_a_wrong_count_is_no_result() -> None:
    wrong = replace(figures(100.0), audit=Audit(1, missing=1, doubled=0))
    found = Results([Run(STEADY, arms.OURS.name, 1, wrong), Run(STEADY, arms.SPARK.name, 1, figures(1.0))])

    assert found.ratio(STEADY, (arms.OURS.name, arms.SPARK.name), targets.rate) is None
    assert not found.all_right


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.6, "aim"), (1.1, "must"), (1.0, "not reached"), (None, "not measured")]
)
def test_a_target_says_what_is_reached(ratio: float | None, expected: str) -> None:
    target = targets.TARGETS[0]

    assert target.reached(target.found(results([ratio], [1.0]))) == expected


def test_a_target_where_less_is_better_is_reached_from_above() -> None:
    memory = targets.TARGETS[-1]

    assert memory.reached(memory.found(Results(bytes_after=[{100: 1000, 1000: 1010}]))) == "aim"
    assert memory.reached(memory.found(Results(bytes_after=[{100: 1000, 1000: 1100}]))) == "not reached"


def test_the_table_has_a_line_for_each_target_even_where_nothing_was_measured() -> None:
    lines = list(targets.lines(Results()))

    assert len(lines) == 2 + len(targets.TARGETS)
    assert all("not measured" in line for line in lines[2:])


def test_each_target_can_be_measured_by_the_full_plan() -> None:
    """What a target asks for is the title of a case, and its arms run there."""
    runs = [Run(case.title, arm.name, 1, figures(2.0)) for case in plan.full().cases for arm in case.arms]
    measured = [target for target in targets.TARGETS if all(target.found(Results(runs)))]

    assert [target.measure for target in targets.TARGETS if target not in measured] == [
        "the same with every: 100ms",
        "visible latency p50 / p99, every: 100ms, against Spark's own",
        "processor time at 1,000 rows/s, every: 1s, against Spark's own",
        "driver's memory after 1,000 epochs against after 100",
    ]


@pytest.mark.parametrize(("failure", "says_so"), [("it fell over", True), ("", False)])
def test_only_a_run_that_failed_is_told_as_one(failure: str, says_so: bool) -> None:
    run = Run("memory", arms.OURS_0S.name, 1, failure=failure, notes=("700 bytes after 5 epochs",))

    assert ("FAILED" in report.line(run)) == says_so
    assert "700 bytes" in report.line(run)


def test_a_plan_is_narrowed_to_what_is_named() -> None:
    small = plan.full().with_cases(["1,024 B", "latency"]).with_arms(["flink", "single"])

    assert not small.epochs
    assert all(case.workload == plan.LARGE for case in small.cases)
    assert {arm.name for arm in small.late} == {"Flink, checkpoints of 1 s"}
    assert plan.full().with_cases(["16 partitions"]).cases[0].partitions == 16


def test_a_scaled_case_keeps_its_number_of_commits() -> None:
    case = plan.full().cases[0].scaled(0.02)

    assert (case.rows, case.rows_per_commit, case.cold_rows) == (20_000, 2_500, 0)
