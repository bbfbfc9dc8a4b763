"""The built wheel, installed into a clean environment: Airflow sees the provider, Spark finds its files."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
CONSTRAINTS = str(PROJECT / "constraints.txt")


def run(*command: str, folder: Path) -> str:
    """Run a command outside of the checkout, so that only the installed package can be found."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env | {"AIRFLOW_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def uv(*arguments: str, folder: Path) -> str:
    return run(sys.executable, "-m", "uv", *arguments, folder=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built through a source distribution, so that nothing of an older build can slip in."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--python", sys.executable, "--build-constraints", CONSTRAINTS]
    uv("build", *options, "--out-dir", str(folder), str(PROJECT), folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that has the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("clean environment")
    uv("venv", "--quiet", "--python", sys.executable, str(folder), folder=folder)
    python = str(folder / "bin" / "python")
    options = ["--quiet", "--python", python, "--constraints", CONSTRAINTS]
    options += ["--build-constraints", CONSTRAINTS]
    uv("pip", "install", *options, f"{wheel}[kafka,postgres]", folder=folder)
    return python


def test_the_wheel_holds_one_top_level_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    version = wheel.name.split("-")[1]

    assert {name.split("/")[0] for name in names} == {
        "airflow_provider_sinks",
        f"airflow_provider_sinks-{version}.dist-info",
    }
    assert "airflow_provider_sinks/py.typed" in names
    assert "airflow_provider_sinks/spark_jobs/sink_job.py" in names


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    files = [path for path in (PROJECT / "airflow_provider_sinks").rglob("*") if path.is_file()]

    assert {str(path.relative_to(PROJECT)) for path in files if path.suffix != ".pyc"} <= names


def test_airflow_lists_the_provider(clean_python: str, tmp_path: Path) -> None:
    listed = run(clean_python, "-m", "airflow", "providers", "list", "--output", "plain", folder=tmp_path)

    assert "airflow-provider-sinks" in listed


def test_the_operator_finds_its_application_and_its_library(clean_python: str, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from airflow_provider_sinks.hooks.application import application_file, write_library\n"
        "print(application_file()); print(write_library(Path.cwd()))\n"
    )
    application, library = run(clean_python, "-c", code, folder=tmp_path).splitlines()
    found = Path(application)

    assert found.is_relative_to(Path(clean_python).parents[1])
    assert "def main" in found.read_text()
    assert zipfile.is_zipfile(library)


def test_the_forms_are_in_the_wheel(clean_python: str, tmp_path: Path) -> None:
    code = (
        "from airflow_provider_sinks import forms\n"
        "made = [getattr(forms, name)() for name in forms.__all__ if name.endswith('_dag')]\n"
        "print(*(dag.dag_id for dag in made))\n"
    )
    made = run(clean_python, "-c", code, folder=tmp_path)

    forms = "alter_connection pause_or_resume_sink reset_sink rewind_sink run_sink_once"
    assert forms in made


def test_the_checker_works_where_there_is_no_spark(clean_python: str, tmp_path: Path) -> None:
    (tmp_path / "dag.py").write_text(
        "from airflow_provider_sinks import Sink, sink_dag\n"
        "dag = sink_dag(Sink(name='a', source='k/a', target='k/b'))\n"
    )

    checked = run(clean_python, "-m", "airflow_provider_sinks", "check", str(tmp_path), folder=tmp_path)

    assert "0 findings in 1 Python file, 1 DAG and 1 sink" in checked
