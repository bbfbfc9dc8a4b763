"""When epochs run and how a sink ends: everything there is and done, or on and on until asked to stop."""

from __future__ import annotations

import stat
import time
from pathlib import Path

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.core.launch.status import SinkState
from tests.live.stage import KeyValue, Stage
from tests.slow_sql import slow

_TEXT = {"from_": {"format": "text"}}
_FEW_SECONDS = 60.0
"""A few seconds on a machine that has something else to do too."""


def _rows(count: int, prefix: str = "v") -> list[KeyValue]:
    return [(f"k{number}", f"{prefix}{number}") for number in range(count)]


def test_endless_sink_reports_each_epoch_and_stops_when_asked(stage: Stage) -> None:
    source = stage.source("every", {0: _rows(30), 1: _rows(12)})
    sink = stage.sink("every", source, trigger={"every": "100ms"}, **_TEXT)

    launch = sink.start()
    before = _modes(launch.files.directory)
    launch.wait_until(lambda: launch.has_passed({0: 30, 1: 12}))
    first = launch.status
    after = _modes(launch.files.directory)
    stage.produce(source, [(0, "k", "more")])
    launch.wait_until(lambda: launch.has_passed({0: 31, 1: 12}))
    second = launch.status
    asked_at = time.monotonic()
    code = launch.stop()
    took = time.monotonic() - asked_at
    last = launch.status

    assert before == {".": 0o700, "launch.json": 0o600, "connections.json": 0o600} | _log(before)
    assert after == {".": 0o700, "launch.json": 0o600, "status.json": 0o600} | _log(after)
    assert first is not None
    assert second is not None
    assert last is not None
    assert (first.state, first.epoch, first.generation, first.launch) == (SinkState.RUNNING, 1, 1, 1)
    assert (first.rows, first.rows_total, first.dead_total) == (42, 42, 0)
    assert first.lag == {0: 0, 1: 0}
    assert first.rows_per_second > 0
    assert first.identities is not None
    assert first.identities.source.name == source
    assert first.started_at < first.at
    assert (second.epoch, second.rows, second.run) == (2, 43, first.run)
    assert (code, last.state, last.error) == (ExitCode.OK, SinkState.STOPPED, None)
    assert took < _FEW_SECONDS
    assert "epoch 2: 43 rows, " in launch.log
    assert len(stage.read(sink.out)) == 43


def test_asked_to_stop_within_an_epoch_it_ends_after_it(stage: Stage) -> None:
    source = stage.source("within", {0: _rows(300)})
    query = f"SELECT value, {slow(10)} AS pause FROM source"  # noqa: S608  no user's text is in it
    sink = stage.sink(
        "within", source, query=query, trigger={"every": "100ms"}, to={"value": "value"}, **_TEXT
    )

    launch = sink.launch()
    launch.wait_until(lambda: any(sink.checkpoints.glob("*/*/offsets/0")))
    code = launch.stop()

    assert code == ExitCode.OK
    status = launch.status
    assert status is not None
    assert status.rows == len(stage.read(sink.out))
    assert status.rows in (0, 300)


def test_asked_to_stop_before_it_began_it_writes_nothing_or_whole_epochs(stage: Stage) -> None:
    sink = stage.sink("early", stage.source("early", {0: _rows(10)}), trigger={"every": "1h"}, **_TEXT)
    files = sink.prepare()
    files.ask_to_stop()

    launch = stage.host.run(files)

    assert launch.wait() == ExitCode.OK
    assert len(stage.read(sink.out)) in (0, 10)


def test_when_its_task_is_gone_it_ends_between_two_epochs(stage: Stage) -> None:
    source = stage.source("orphan", {0: _rows(20)})
    sink = stage.sink("orphan", source, trigger={"every": "100ms"}, **_TEXT)
    files = sink.prepare()

    with held(files.liveness_lock):
        launch = stage.host.run(files)
        launch.wait_until(lambda: launch.has_passed({0: 20}))
    code = launch.wait()

    assert code == ExitCode.OK
    assert launch.status is not None
    assert launch.status.state is SinkState.STOPPED
    assert launch.status.writers == ("driver", "p0")
    assert len(stage.read(sink.out)) == 20


def test_available_now_takes_what_is_there_in_epochs_of_a_limited_size(stage: Stage) -> None:
    source = stage.source("now", {0: _rows(25)})
    sink = stage.sink("now", source, from_={"format": "text", "max_offsets_per_epoch": 10})

    status = sink.run()

    assert (status.state, status.epoch, status.rows) == (SinkState.STOPPED, 3, 25)
    ranges = [(r.from_[0], r.to[0]) for writer, r in stage.progress(sink) if writer == "p0"]
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == 25


def test_available_now_with_nothing_new_ends_and_changes_nothing(stage: Stage) -> None:
    sink = stage.sink("idle", stage.source("idle", {0: _rows(5)}), **_TEXT)
    first = sink.run()

    second = sink.run()

    assert (second.epoch, second.rows, second.rows_total) == (first.epoch, 0, 5)
    assert second.positions == first.positions
    assert second.run != first.run
    assert len(stage.read(sink.out)) == 5


def test_latest_is_resolved_once_at_the_first_start(stage: Stage) -> None:
    source = stage.source("latest", {0: _rows(5), 1: []})
    sink = stage.sink("latest", source, from_={"format": "text", "start": "latest"})
    sink.run()
    stage.produce(source, [(0, None, "new"), (1, None, "newer")])

    status = sink.run()

    assert sorted(record.value or b"" for record in stage.read(sink.out)) == [b"new", b"newer"]
    assert status.positions == {0: 6, 1: 1}


def test_start_at_named_offsets_and_partitions_that_came_later(stage: Stage) -> None:
    source = stage.source("named", {0: _rows(5), 1: _rows(5, "w")})
    sink = stage.sink("named", source, from_={"format": "text", "start": {0: 3}})
    sink.run()
    stage.grow_topic(source, 3)
    stage.produce(source, [(2, None, "late")])

    status = sink.run()

    values = sorted(record.value or b"" for record in stage.read(sink.out))
    assert values == [b"late", b"v3", b"v4", *(f"w{number}".encode() for number in range(5))]
    assert status.positions == {0: 5, 1: 5, 2: 1}


def _modes(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder and of what is in it."""
    whole = [entry for entry in folder.iterdir() if entry.suffix != ".tmp"]  # no status that is being written
    found = {entry.name: entry for entry in whole}
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in {".": folder, **found}.items()}


def _log(modes: dict[str, int]) -> dict[str, int]:
    """Keep the driver's log, which the test itself writes here."""
    return {name: mode for name, mode in modes.items() if name.endswith(".log")}
