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
    command = [sys.executable, "-m", "airflow", "sinks", verb, sink.name, *options, "-o", "json"]
    environment = sink.airflow.environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert code in (None, done.returncode), f"{verb}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if done.stdout else done.stderr
