"""The commands ``airflow sinks`` beside a running Airflow, as a person gives them on its machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.live.sinks_in_airflow import AirflowSink


def airflow_sinks(sink: AirflowSink, verb: str, *options: str, code: int | None = 0) -> Any:
    """Run a command about a sink and return what it printed.

    :param code: the exit code that is expected, or ``None`` for any.
    """
    done = _run(sink, verb, sink.name, *options)
    assert code in (None, done.returncode), f"{verb}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if done.stdout else done.stderr


def listed(sink: AirflowSink) -> dict[str, Any]:
    """Return what the list of all sinks says of a sink."""
    done = _run(sink, "list")
    assert done.returncode == 0, done.stderr
    (row,) = [row for row in json.loads(done.stdout) if row["sink"] == sink.name]
    return dict(row)


def _run(sink: AirflowSink, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "airflow", "sinks", *words, "-o", "json"]
    environment = sink.airflow.environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
