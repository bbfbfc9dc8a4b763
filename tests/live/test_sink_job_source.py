"""A source topic that is made anew while its sink runs: none of its rows ever becomes visible."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from tests.faults.outcome import ROUNDS
from tests.faults.topics import Onlooker
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_RECORDED, _ANEW = 500, 900
_PARTITIONS = 2
_END_SECONDS = 120.0


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
    if status.state is SinkState.REFUSED:
        assert status.error is not None
        assert status.error.detail.endswith("Nothing of the epoch under way is committed.")
        assert "start_over" in status.error.hint


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
