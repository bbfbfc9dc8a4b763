"""What a driver prints when nothing is wrong: its own lines, and no warning, error or traceback."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.streaming.driver_share import SETTING
from tests.live.stage import Stage

_NOISE = re.compile(r"\b(?:WARN|ERROR|FATAL)\b|Traceback|Warning\b|Exception\b|Error\b")
_EPOCHS = 3


_STATE = {
    "query": "SELECT value AS key, count(*) AS n FROM source GROUP BY value",
    "target": {"key": "key", "format": "json"},
}


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        pytest.param({}, {}, id="the driver writes"),
        pytest.param(_STATE, {SETTING: "0"}, id="executors write, and Spark keeps state"),
    ],
)
def test_a_sink_that_falls_behind_and_ends_well_leaves_no_noise_in_its_log(
    stage: Stage, spec: dict[str, Any], settings: dict[str, str]
) -> None:
    source = stage.source("quiet", {0: [("k", "v")], 1: [("k", "w")]})
    given = {name: value for name, value in spec.items() if name != "target"}
    to = spec.get("target", {})
    sink = stage.sink("quiet", source, trigger={"every": "1ms"}, from_={"format": "text"}, to=to, **given)

    launch = sink.submit(*(word for item in settings.items() for word in ("--conf", "=".join(item))))
    for passed in range(1, _EPOCHS + 1):
        launch.wait_until(partial(launch.has_passed, {0: passed, 1: passed}))
        stage.produce(source, [(0, "k", "more"), (1, "k", "more")])
    code = launch.stop()

    noise = [line for line in launch.log.splitlines() if _NOISE.search(line)]
    assert code == ExitCode.OK
    assert noise == [], launch.log
