"""The wheel as who publishes it makes it, and environments that have it and nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PROJECT_URL = "https://forge.example/team/sinks"
CONSTRAINTS = str(PROJECT / "constraints.txt")


def run(*command: str, folder: Path, given: str = "") -> str:
    """Run a command outside of the checkout, so that only the installed package can be found."""
    ours = ("AIRFLOW_", "PYTHONPATH", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env | {"AIRFLOW_HOME": str(folder)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def uv(*arguments: str, folder: Path) -> str:
    return run(sys.executable, "-m", "uv", *arguments, folder=folder)


def clean_environment(folder: Path, *packages: str) -> str:
    """Make an environment that has these packages and what they ask for, and return its Python."""
    uv("venv", "--quiet", "--python", sys.executable, str(folder), folder=folder)
    python = str(folder / "bin" / "python")
    options = ["--quiet", "--python", python, "--constraints", CONSTRAINTS]
    options += ["--build-constraints", CONSTRAINTS]
    uv("pip", "install", *options, *packages, folder=folder)
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as who publishes it makes it, through a source distribution: nothing older slips in."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--python", sys.executable, "--build-constraints", CONSTRAINTS]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PROJECT_URL", PROJECT_URL)
        uv("build", *options, "--out-dir", str(folder), str(PROJECT), folder=folder)
    (built,) = folder.glob("*.whl")
    return built
