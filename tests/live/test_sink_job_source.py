"""A source topic that is made anew while its sink runs: none of its rows ever becomes visible."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from tests.faults.outcome import ROUNDS
from tests.faults.topics import Onlooker
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage
from tests.slow_sql import slow

_RECORDED, _ANEW = 500, 900
_PARTITIONS = 2
_END_SECONDS = 120.0
_BY_SPARK = ("are gone before they were read", "the streaming query of sink", "do not answer")
_QUICK, _SLOW = 3, 20
_MILLISECONDS = 500


@pytest.mark.timeout(120 + 60 * ROUNDS)
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_of_a_source_made_anew_under_the_sink_never_become_visible(stage: Stage) -> None:
    for _ in range(ROUNDS):
        _make_anew_under_a_running_sink(stage)


def _make_anew_under_a_running_sink(stage: Stage) -> None:
    """The sink has passed all rows of the source; then the name gets a new topic, longer than the old one."""
    source = stage.source("anew", dict.fromkeys(range(_PARTITIONS), _rows("ours", _RECORDED)))
    sink = stage.sink("anew", source, from_={"format": "text"}, to={"partitions": 1}, trigger={"every": "1s"})
    stage.create_topic(sink.out)
    with Onlooker(stage.client, sink.out, 1) as onlooker:
        status = _ended(stage, sink, source)
        refused = sink.fail(ExitCode.REFUSED)

    seen = [record.value or b"" for record in onlooker.seen]
    assert [value for value in seen if value.startswith(b"foreign")] == []
    assert sorted(seen) == sorted(b"ours %d" % n for n in range(_RECORDED) for _ in range(_PARTITIONS))
    assert refused.error is not None
    assert refused.error.primary.startswith(f'source topic "{source}" is not the one that sink')
    assert status.rows_total == _PARTITIONS * _RECORDED == _recorded(stage, sink)
    assert status.positions == dict.fromkeys(range(_PARTITIONS), _RECORDED)
    assert status.error is not None
    if status.state is SinkState.REFUSED:
        assert status.error.primary == refused.error.primary
        assert status.error.detail.endswith("Nothing of the epoch under way is committed.")
        assert Sink.code(status, "start_over") == Sink.code(refused, "start_over")
    else:  # Spark itself met the other topic before anybody looked
        assert any(part in status.error.primary for part in _BY_SPARK), str(status.error)
    _start_over(stage, sink, refused)


def _start_over(stage: Stage, sink: Sink, refused: SinkStatus) -> None:
    """Take the way on: the rows of the new topic come, once, beside those that were written."""
    launch = sink.launch(accept=Sink.code(refused, "start_over"))
    launch.wait_until(lambda: launch.has_passed(dict.fromkeys(range(_PARTITIONS), _ANEW)))
    assert launch.stop() == ExitCode.OK
    written = [*_rows("ours", _RECORDED), *_rows("foreign", _ANEW)] * _PARTITIONS
    found = sorted(record.value or b"" for record in stage.read(sink.out))
    assert found == sorted(str(value).encode() for _, value in written)
    assert launch.status is not None
    assert launch.status.generation == 2


def test_adopting_a_source_made_anew_under_the_sink_goes_on_at_the_recorded_offsets(stage: Stage) -> None:
    """What stands before them in the new topic is left out: the code says so, and a person has chosen it."""
    source = stage.source("adopted", dict.fromkeys(range(_PARTITIONS), _rows("ours", _RECORDED)))
    sink = stage.sink("adopted", source, from_={"format": "text"}, trigger={"every": "1s"})
    _ended(stage, sink, source)
    refused = sink.fail(ExitCode.REFUSED)

    launch = sink.launch(accept=Sink.code(refused, "adopt"))
    launch.wait_until(lambda: launch.has_passed(dict.fromkeys(range(_PARTITIONS), _ANEW)))

    assert launch.stop() == ExitCode.OK
    written = [*_rows("ours", _RECORDED), *_rows("foreign", _ANEW)[_RECORDED:]] * _PARTITIONS
    found = sorted(record.value or b"" for record in stage.read(sink.out))
    assert found == sorted(str(value).encode() for _, value in written)
    assert launch.status is not None
    assert (launch.status.generation, launch.status.rows_total) == (1, len(written))
    assert refused.error is not None
    assert f"resume at offsets 0: {_RECORDED}, 1: {_RECORDED}" in refused.error.hint


@pytest.mark.parametrize("stage", [pytest.param(0, id="executors write")], indirect=True)
def test_what_a_torn_epoch_has_committed_is_counted_and_starting_over_is_exact(stage: Stage) -> None:
    """One partition is committed and the other one still at work when the source is made anew."""
    quick = [*_rows("quick", _QUICK), ("k", b"\xff")]
    source = stage.source("torn", {0: quick, 1: _rows("slow", _SLOW)})
    dead = f"{source}-dead"
    takes = f"IF(value LIKE 'slow%', {_MILLISECONDS}, 0)"
    sink = stage.sink(
        "torn",
        source,
        from_={"format": "text"},
        to={"partitions": 1},
        select=["value"],
        where=f"{slow(takes)} IS NOT NULL",
        dead_letter=dead,
    )

    launch = sink.launch()
    launch.wait_until(lambda: sink.out in stage.topics() and len(stage.read(sink.out)) == _QUICK)
    stage.delete_topic(source)
    stage.create_topic(source, 1)
    stage.produce(source, [(0, *row) for row in _rows("anew", _ANEW)])
    code, status = launch.wait(_END_SECONDS), launch.status

    assert status is not None
    assert status.error is not None
    assert code == ExitCode.REFUSED, str(status.error)
    assert status.error.primary.startswith(f'source topic "{source}" is not the one that sink')
    assert status.error.detail.endswith(
        "Of the epoch under way 3 rows and 1 dead letter are committed; their writers saw the recorded "
        "source topic after reading them."
    )
    assert (status.rows_total, status.dead_total, status.positions) == (_QUICK, 1, {0: len(quick), 1: 0})
    again = sink.run(accept=Sink.code(status, "start_over"))
    assert (again.generation, again.rows_total) == (2, _ANEW)
    written = [*_rows("quick", _QUICK), *_rows("anew", _ANEW)]
    found = [record.value for record in stage.read(sink.out)]
    assert sorted(filter(None, found)) == sorted(str(value).encode() for _, value in written)
    assert len(stage.read(dead)) == 1


def _ended(stage: Stage, sink: Sink, source: str) -> SinkStatus:
    """Replace the source of a running sink right behind one of its looks, and wait for its end."""
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed(dict.fromkeys(range(_PARTITIONS), _RECORDED)))
    stage.delete_topic(source)
    stage.create_topic(source, _PARTITIONS)
    stage.produce(
        source,
        [(partition, *row) for partition in range(_PARTITIONS) for row in _rows("foreign", _ANEW)],
    )
    assert launch.wait(_END_SECONDS) != ExitCode.OK
    status = launch.status
    assert status is not None
    return status


def _rows(whose: str, count: int) -> list[KeyValue]:
    return [("k", f"{whose} {number}") for number in range(count)]


def _recorded(stage: Stage, sink: Sink) -> int:
    """Return how many rows the progress topic says are committed."""
    newest = dict(stage.progress(sink))
    return sum(record.rows_total for writer, record in newest.items() if writer != "driver")
