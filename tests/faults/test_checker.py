"""The checker catches what it is there for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord
from tests.faults import checker, outcome
from tests.faults.checker import Verdict, judge
from tests.faults.feed import Row
from tests.faults.topics import Record

ROWS = [Row.make(0, seq) for seq in range(12)]
TOPIC = Identity("cluster", "topic", "id", 1)
EPOCH = ProgressRecord(
    1, "me", "run", 1, {0: 0}, {0: 6}, Identities(TOPIC, TOPIC, TOPIC), rows=6, rows_total=6
)


def record(row: Row, offset: int, partition: int = 0) -> Record:
    value = {"id": row.id, "key": row.key, "seq": row.seq}
    return Record(partition, offset, row.key.encode(), json.dumps(value).encode())


GOOD = [record(row, offset) for offset, row in enumerate(ROWS)]


def window(count: int, offset: int) -> Record:
    value = {"key": "k0-0", "start": "2026-01-01T00:00:00.000000Z", "n": count}
    return Record(0, offset, b"k0-0", json.dumps(value).encode())


def expected(epoch: ProgressRecord) -> Counter[str]:
    return Counter(row.id for row in ROWS if epoch.from_[0] <= row.seq < epoch.to[0])


def test_a_right_output_has_nothing_wrong() -> None:
    assert judge(GOOD, ROWS) == Verdict(12)


@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        pytest.param(lambda o: o[:5] + o[6:], Verdict(11, missing=("0-5",)), id="missing"),
        pytest.param(lambda o: [*o, record(ROWS[11], 12)], Verdict(13, duplicates=("0-11",)), id="doubled"),
        pytest.param(
            lambda o: [*o, record(Row.make(0, 12, "ghost-"), 12)],
            Verdict(13, foreign=("ghost-0-12",)),
            id="foreign",
        ),
        pytest.param(
            lambda o: [replace(o[0], key=b"k9"), *o[1:]],
            Verdict(12, altered=("0-0",)),
            id="under another key",
        ),
        pytest.param(
            lambda o: [o[4], *o[1:4], o[0], *o[5:]], Verdict(12, out_of_order=("0-0",)), id="out of order"
        ),
        pytest.param(
            lambda o: [*o[:8], replace(o[8], partition=1), *o[9:]],
            Verdict(12, out_of_order=("0-8",)),
            id="in another partition",
        ),
    ],
)
def test_each_kind_of_wrong_is_told(break_it: Callable[[list[Record]], list[Record]], found: Verdict) -> None:
    assert judge(break_it(GOOD), ROWS) == found


def test_whole_epochs_are_not_torn() -> None:
    second = replace(EPOCH, epoch=2, from_={0: 6}, to={0: 12}, rows_total=12)
    output = GOOD[:6] + [replace(r, offset=r.offset + 1) for r in GOOD[6:]]
    history = [(DRIVER, replace(EPOCH, epoch=0)), ("all", EPOCH), ("all", second)]

    assert checker.torn(output, history, expected, outcome.identify) == []


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(GOOD[:4], id="a part of an epoch"),
        pytest.param(
            GOOD[:3] + [replace(r, offset=r.offset + 1) for r in GOOD[3:6]], id="an epoch in two parts"
        ),
        pytest.param(GOOD[:7], id="more than an epoch"),
        pytest.param([], id="nothing of an epoch"),
    ],
)
def test_a_part_of_an_epoch_is_told(output: list[Record]) -> None:
    assert checker.torn(output, [("all", EPOCH)], expected, outcome.identify)


def test_progress_that_goes_backwards_is_told() -> None:
    ahead = replace(EPOCH, epoch=2, to={0: 12}, rows_total=12)

    assert checker.regressions([("all", EPOCH), ("all", ahead)]) == []
    assert checker.regressions([("all", ahead), ("all", EPOCH)])


def test_window_counts_must_rise_to_the_true_count() -> None:
    rows = [row for row in ROWS if row.key == "k0-0"]

    assert outcome.judge_windows([window(1, 0), window(3, 1)], rows) == Verdict(2)
    assert outcome.judge_windows([window(1, 0), window(2, 1)], rows).missing
    assert outcome.judge_windows([window(3, 0), window(3, 1)], rows).duplicates
    assert outcome.judge_windows([window(4, 0)], rows).foreign
