"""The four programs of the local Airflow end together, whichever ends first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAMS = """
import os, sys, time
from airflow_provider_sinks.local.forked_airflow import _run_until_one_ends

def fork(seconds, code):
    pid = os.fork()
    if pid:
        return pid
    time.sleep(seconds)
    os._exit(code)

sys.exit(_run_until_one_ends({fork(600, 0): "triggerer", fork(0, 3): "scheduler", fork(600, 0): "api"}))
"""


def test_a_program_that_ends_ends_the_others_and_is_named_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "airflow-scheduler.log").write_text("no such table\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "airflow scheduler ended (3)\nno such table\n")
