"""A driver that commits what tasks have staged, frozen and woken up behind its successor."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from airflow_provider_sinks.core.errors import ExitCode
from tests.installed_connector import Installed, visible_rows
from tests.live.stage import KeyValue, Sink, Stage


def _rows(*ids: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}}}') for number in ids]


def _ids(sink: Sink) -> list[int]:
    return sorted(row["id"] for row in visible_rows(sink.parsed))


def test_a_driver_that_wakes_up_behind_its_successor_commits_nothing_and_ends_as_fenced(
    stage: Stage, installed_files: Installed, tmp_path: Path
) -> None:
    wheel = shutil.copy(installed_files.wheel, tmp_path / "files.zip")
    source = stage.source("zombie", {0: _rows(0), 1: _rows(1)})
    target = {"files": {"path": str(stage.folder / "data" / "orders")}}
    options = {"from_": {"schema": "id int"}, "target": target, "trigger": {"every": "100ms"}}
    with installed_files.found():
        sink = stage.sink("zombie", source, **options)
        zombie = sink.submit("--py-files", str(wheel))
        zombie.wait_epochs(1)
        for number in range(2, 40):  # so that it is frozen somewhere in an epoch
            stage.produce(source, [(number % 2, *_rows(number)[0])])
        zombie.signal(signal.SIGSTOP)
        sink.spec = {**sink.spec, "trigger": "available_now"}
        successor = sink.run()
        zombie.signal(signal.SIGCONT)

        assert zombie.wait() == ExitCode.FENCED
        stage.produce(source, [(0, *_rows(40)[0])])
        status = sink.run()
        assert (successor.rows_total, status.rows_total) == (40, 41)
        assert _ids(sink) == list(range(41))
