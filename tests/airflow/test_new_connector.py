"""``airflow sinks new-connector``: what it writes works as written, and it writes all of it or nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_sinks.cli.new_connector import name_problems, template, write_project
from airflow_provider_sinks.core.errors import ConfigurationError
from tests.airflow.desk import answered
from tests.installed_connector import install

ROOT = Path(__file__).parents[2]


def problems(name: str) -> list[str]:
    return [str(problem) for problem in name_problems(name)]


def test_what_it_writes_is_installed_and_keeps_the_contract_as_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    written = answered(capsys, "new-connector", "tool_shed", "-o", "json")

    project = tmp_path / "sinks-connector-tool-shed"
    assert written.code == 0, written.err
    assert sorted(tmp_path / entry["file"] for entry in written.data) == files_of(project)
    installed = install(tmp_path / "built", project)
    paths = os.pathsep.join([str(installed.folder), str(ROOT)])
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    assert "TestToolShed::test_a_newer_start_fences_the_driver_of_the_older" in collected(project, paths)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def collected(project: Path, paths: str) -> str:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout


def test_nothing_of_the_name_in_our_copy_is_left_in_it(tmp_path: Path) -> None:
    write_project("shelf", tmp_path / "shelf")

    left = [
        path for path in files_of(tmp_path / "shelf") if "mytarget" in f"{path}{path.read_text()}".lower()
    ]
    assert left == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Tool-Shed", "write tool_shed"),
        ("ToolShed", "write tool_shed"),
        ("2nd", "write nd"),
        ("schön", "write sch_n"),
        ("", "write my_target"),
        ("../x", "write x"),
        ("kafka", "is the name of a target that is installed (write my_kafka)"),
        ("Postgres", "write my_postgres"),
        ("class", "means something else in Python or in a spec (write my_class)"),
        ("json", "means something else in Python or in a spec (write my_json)"),
        ("a" * 41, f"write {'a' * 40}"),
    ],
)
def test_a_name_that_is_none_is_told_with_the_nearest_that_is(name: str, said: str) -> None:
    (problem,) = problems(name)

    assert said in problem
    assert problems(problem.rpartition("write ")[2].rstrip(")")) == []


def test_a_name_that_would_give_a_class_the_name_of_another_is_refused() -> None:
    trees = [ast.parse(text) for path, text in template().items() if path.endswith(".py")]
    unlucky = set().union(*map(unlucky_names, trees))

    assert {"connector", "plain", "target"} <= unlucky
    assert [name for name in unlucky if not problems(name)] == []


def unlucky_names(tree: ast.Module) -> set[str]:
    """Return the names of targets with which two classes of one file would have one name."""
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name[0].isupper()
    }
    named = imported | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    ends = [name.removeprefix("MyTarget") for name in named if name.startswith("MyTarget")]
    others = [name for name in named if not name.startswith("MyTarget")]
    return {name.removesuffix(end).lower() for name in others for end in ends if name.endswith(end)} - {""}


def test_a_folder_that_is_there_is_left_alone_and_a_free_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine-2").symlink_to("nowhere")

    refused = answered(capsys, "new-connector", "class", "--folder", str(tmp_path / "mine"))

    assert refused.code == 64
    assert f"--folder: {tmp_path}/mine is there already (write --folder {tmp_path}/mine-3)" in refused.err
    assert "write my_class" in refused.err  # all that is wrong, at once
    assert files_of(tmp_path) == []


def test_a_folder_without_a_place_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = answered(capsys, "new-connector", "shelf", "--folder", str(tmp_path / "no" / "shelf"))

    assert refused.code == 64
    assert f"{tmp_path}/no is no folder (make it first)" in refused.err


def test_a_disk_that_fails_in_the_middle_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = Path.write_text, []

    def fail(path: Path, text: str, encoding: str) -> int:
        written.append(path)
        if len(written) == 4:
            raise OSError(28, "No space left on device")
        return write(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(ConfigurationError, match="could not be written"):
        write_project("shelf", tmp_path / "shelf")

    assert list(tmp_path.iterdir()) == []
