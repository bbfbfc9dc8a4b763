"""The examples in docstrings run: of every file that has some."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def with_examples() -> list[str]:
    files = sorted((_ROOT / "airflow_provider_sinks").rglob("*.py"))
    named = [file.relative_to(_ROOT).with_suffix("") for file in files if ">>> " in file.read_text()]
    return [".".join(name.parts) for name in named]


@pytest.mark.parametrize("name", with_examples())
def test_examples(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))

    assert (failed, tried > 0) == (0, True)
