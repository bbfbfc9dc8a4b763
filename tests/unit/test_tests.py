"""How tests are written: they wait for states, and nobody runs one again until it passes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ADMINISTERED = {
    "create_topics",
    "delete_topics",
    "create_partitions",
    "alter_configs",
    "incremental_alter_configs",
    "delete_records",
    "elect_leaders",
    "create_acls",
    "delete_acls",
}
"""A broker answers to these before they are done; ``administrator.py`` waits until they are."""
WAITS = {TESTS / "administrator.py", TESTS / "bench" / "topics.py"}
AGAIN = re.compile(r"\bflaky\(|mark\.flaky|rerunfailures|--reruns|pytest[-_]retry", re.IGNORECASE)


def assumed(text: str) -> Iterator[str]:
    """Give each call after which a test would go on before the broker has done what it was asked for."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ADMINISTERED
        ):
            yield f"{node.lineno}: {node.func.attr}"


def test_no_test_goes_on_before_the_broker_has_done_what_it_was_asked_for() -> None:
    files = [
        file for file in TESTS.rglob("*.py") if file not in WAITS and TESTS / "planted" not in file.parents
    ]

    assert {str(file): found for file in files if (found := [*assumed(file.read_text())])} == {}


def test_no_test_is_run_again_until_it_passes() -> None:
    written = [*TESTS.rglob("*.py"), *(TESTS.parent / name for name in ("pyproject.toml", "Makefile"))]
    said = [*written, *TESTS.parent.glob("scripts/*"), *TESTS.parent.glob(".ci/*")]

    files = {file for file in said if file.is_file() and file != Path(__file__)}
    assert {file for file in files if AGAIN.search(file.read_text(errors="replace"))} == set()


@pytest.mark.parametrize(
    "call",
    [
        "admin.create_topics([t])",
        "self.admin().delete_topics(['a'])['a'].result()",
        "admin.incremental_alter_configs([resource])[resource].result(30)",
        "[deletion] = admin.delete_records([place]).values()",
        "admin.elect_leaders(ElectionType.PREFERRED, None).result()",
    ],
)
def test_what_goes_on_too_early_is_found(call: str) -> None:
    assert len([*assumed(f"def test():\n    {call}\n")]) == 1


@pytest.mark.parametrize(
    "line", ["@pytest.mark.flaky(reruns=2)", "pytest --reruns 3", '"pytest-rerunfailures>=1"']
)
def test_what_runs_a_test_again_is_found(line: str) -> None:
    assert AGAIN.search(line)
