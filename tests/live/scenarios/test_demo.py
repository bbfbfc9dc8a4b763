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
    table = dict(re.findall(r"^(\w[\w ]*?) {2,}([\d,]+)$", done.stdout, re.MULTILINE))

    assert done.returncode == 0, done.stdout + done.stderr
    assert table["rows in"] == table["rows out"] == "200,000"
    assert (table["missing"], table["duplicates"], table["epochs"]) == ("0", "0", "4")
    assert "verdict: refuse: " in done.stdout
    left = {path.name for path in folder.iterdir()}
    assert left == {f"sinks-ports-{os.geteuid()}"}  # by which all programs of a user claim ports, for good
