"""A query that keeps state: windowed counts, as rows that change and as rows that are done."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_SCHEMA = "word string, at timestamp"
_COUNTS = (
    "SELECT word, window(at, '10 seconds').start AS start, count(*) AS n "
    "FROM source GROUP BY word, window(at, '10 seconds')"
)
_PARTS = {
    "from_": {"schema": _SCHEMA, "watermark": {"column": "at", "delay": "10s"}},
    "to": {"key": ["word", "start"]},
    "query": _COUNTS,
}


def _said(word: str, second: int) -> KeyValue:
    return (None, json.dumps({"word": word, "at": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"}))


_FIRST = {0: [_said("a", 1), _said("b", 2), (None, "{"), _said("a", 11)], 1: [_said("a", 3), (None, "{{")]}
_LATER = [(0, *_said("a", 4)), (1, *_said("b", 12)), (1, None, "{{{")]
_LATEST = [(0, *_said("a", 60))]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_windowed_counts_are_written_as_they_change(stage: Stage) -> None:
    sink = _run_three_times(stage, "update")

    changes = [("a", "00:00", 2), ("b", "00:00", 1), ("a", "00:10", 1), ("a", "00:00", 3), ("b", "00:10", 1)]
    assert _counts(stage, sink) == Counter([*changes, ("a", "01:00", 1)])
    keys = {record.key for record in stage.read(sink.out)}
    assert b'{"word":"a","start":"2026-01-01T00:00:00.000000Z"}' in keys


def test_windowed_counts_are_written_once_they_are_done(stage: Stage) -> None:
    sink = _run_three_times(stage, "append")

    wanted = [("a", "00:00", 3), ("b", "00:00", 1), ("a", "00:10", 1), ("b", "00:10", 1)]
    assert _counts(stage, sink) == Counter(wanted)


def _run_three_times(stage: Stage, mode: str) -> Sink:
    """Run a sink over records that come in three portions, and see that nothing is lost."""
    source = stage.source(mode, _FIRST)
    sink = stage.sink(mode, source, dead_letter=f"{source}-dead", output_mode=mode, **_PARTS)
    for more in (_LATER, _LATEST):
        sink.run()
        stage.produce(source, more)
    status = sink.run()

    assert sorted(record.value or b"" for record in stage.read(f"{source}-dead")) == [b"{", b"{{", b"{{{"]
    assert (status.rows_total, status.dead_total) == (len(stage.read(sink.out)), 3)
    assert {writer for writer, _ in stage.progress(sink)} == {"driver", "all"}
    return sink


def _counts(stage: Stage, sink: Sink) -> Counter[tuple[str, str, int]]:
    """Return word, start of the window as minute and second, and count of each row."""
    rows = [json.loads(record.value or b"{}") for record in stage.read(sink.out)]
    return Counter((row["word"], row["start"][14:19], row["n"]) for row in rows)
