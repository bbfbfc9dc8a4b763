"""Our own code as Spark gets it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from airflow_provider_sinks.drivers.application import application_file, write_library


def test_the_application_is_found() -> None:
    assert application_file().name == "sink_job.py"


def test_the_library_is_the_same_for_the_same_code(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    first, second = write_library(tmp_path / "a"), write_library(tmp_path / "b")

    assert first.name == "airflow_provider_sinks.zip"
    assert first.read_bytes() == second.read_bytes()


def test_the_library_holds_what_a_driver_needs_and_nothing_of_airflow(tmp_path: Path) -> None:
    names = zipfile.ZipFile(write_library(tmp_path)).namelist()

    folders = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert folders == {"clients", "connectors", "core", "streaming"}
    assert not [name for name in names if "__pycache__" in name]


def test_a_driver_that_has_only_the_library_finds_our_targets(tmp_path: Path) -> None:
    library = write_library(tmp_path)
    program = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]\n"
        "from importlib.metadata import entry_points\n"
        "print(sorted((p.name, p.value) for p in entry_points(group='airflow_provider_sinks.connectors')))"
    )

    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(library)!r})\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "('kafka', 'airflow_provider_sinks.connectors.kafka.kind:KIND')" in done.stdout, done.stderr


def test_the_library_imports_without_airflow(tmp_path: Path) -> None:
    library = write_library(tmp_path)
    program = (
        "import sys; sys.modules['airflow'] = None\n"
        "import airflow_provider_sinks.core.spec.sink, airflow_provider_sinks.core.launch.files as launch\n"
        "print(launch.__file__)"
    )

    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(library)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert str(library) in done.stdout
