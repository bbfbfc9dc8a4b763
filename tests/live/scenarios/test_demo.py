"""``make demo`` as a user runs it: the example DAGs, a folder with a space, somebody's broker beside it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(1500)  # it plays all of its acts; beside two busy processes that took more than 600 s
def test_the_demo_passes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with contextlib.ExitStack() as others:
        with contextlib.suppress(OSError):  # somebody's broker may stand there already
            others.enter_context(socket.create_server(("127.0.0.1", 9092)))
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parents[3] / "scripts" / "demo")],
            env={**os.environ, "TMPDIR": str(folder)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    line = r"^(\w+) +[\w-]+ +([\d,]+) +([\d,]+) +(\d+) +(\d+) +(\d+)$"
    found = {sink: figures for sink, *figures in re.findall(line, done.stdout, re.MULTILINE)}

    assert done.returncode == 0, done.stdout + done.stderr
    killed = [f"views_in_{target}" for target in ("kafka", "postgres", "iceberg", "delta")]
    exact = ["200,000", "200,000", "0", "0"]
    assert found == {"pageviews_enriched": [*exact, "1"], **{sink: [*exact, "2"] for sink in killed}}
    assert "verdict: refuse: " in done.stdout
    left = {path.name for path in folder.iterdir()}
    assert left == {f"sinks-ports-{os.geteuid()}"}  # by which all programs of a user claim ports, for good
