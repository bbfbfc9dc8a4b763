"""The page that says which test fails without which claim names tests that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "proof.md").read_text()
CODE = re.compile(r"`([^`]+)`")
SHORT = re.compile(r"([a-z]+(?:/[a-z]+)*/test_\w+)?::(\w+)")


def named(text: str) -> Iterator[tuple[Path, str]]:
    """Give file and function of each test; a name without a file is of the file before it in its line."""
    for line in text.splitlines():
        file = ""
        for code in CODE.findall(line):
            if "::" in code:
                said = SHORT.fullmatch(code)
                assert said, code
                file = said[1] or file
                yield TESTS / f"{file}.py", f"test_{said[2]}"


def functions(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def missing(text: str) -> list[str]:
    tests = [*named(text)]
    there = {file: functions(file) for file, _ in tests}
    return [f"{file.relative_to(TESTS)}::{name}" for file, name in tests if name not in there[file]]


def test_each_test_that_the_page_names_is_there() -> None:
    assert len([*named(PAGE)]) > 100
    assert missing(PAGE) == []


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("`unit/test_spec::nobody_wrote_this`", "unit/test_spec.py"),
        ("`unit/test_spec::short_forms`, `::nobody_wrote_this`", "unit/test_spec.py"),
        ("`unit/test_nobody::nobody_wrote_this`", "unit/test_nobody.py"),
        ("`unit/test_spec::short_forms`\n`::nobody_wrote_this`", ".py"),
    ],
)
def test_a_test_that_is_not_there_is_seen(text: str, file: str) -> None:
    assert missing(text) == [f"{file}::test_nobody_wrote_this"]


def test_what_is_no_short_form_is_seen() -> None:
    with pytest.raises(AssertionError, match=r"unit/spec::short_forms"):
        missing("`unit/spec::short_forms`")
