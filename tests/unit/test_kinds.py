"""Which kinds of target there are, and what is said where one is missing or broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.core.connection import types
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec import kinds
from airflow_provider_sinks.core.spec.sink import SinkSpec

SOURCE = {"kafka": {"connection": "k", "topic": "orders", "schema": "id long"}}
Register = Callable[[str], None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Install a package whose one module holds this code, as the kind ``broken``."""

    def write(code: str) -> None:
        folder = tmp_path / "broken-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[{kinds.GROUP}]\nbroken = broken_kind:KIND\n")
        (tmp_path / "broken_kind.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(__import__("sys").modules, "broken_kind", raising=False)
        _forget()

    yield write
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    kinds.points.cache_clear()
    kinds.load.cache_clear()
    types.known_types.cache_clear()


def problems_of(target: object) -> str:
    with pytest.raises(ConfigurationError) as refused:
        SinkSpec.parse({"name": "orders", "source": SOURCE, "target": target, "where": ""})
    return f"{refused.value.primary} {refused.value.detail}"


def test_a_kind_that_is_not_installed_is_told_with_those_that_are_and_all_other_problems() -> None:
    told = problems_of({"hudi": {"table": "shop.orders"}})

    known = "known are delta, iceberg, kafka, postgres, spark;"
    assert f"target.hudi: is no kind of target that is installed ({known}" in told
    assert "target.kafka" not in told
    assert "where: is empty" in told


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("kind = 1", "AttributeError: module 'broken_kind' has no attribute 'KIND'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_told_by_its_entry_point(
    register: Register, code: str, why: str
) -> None:
    register(code)

    told = problems_of({"broken": {}})

    assert "'broken' cannot be loaded from broken_kind:KIND" in told
    assert why in told


def test_a_kind_that_does_not_say_its_type_of_connection_is_told_at_once(register: Register) -> None:
    register("class KIND:\n    class sink:\n        pass\n")

    assert "has no attribute 'connection'" in problems_of({"broken": {}})


def test_a_broken_package_harms_no_other_sink(register: Register) -> None:
    register("raise RuntimeError('not today')")

    spec = SinkSpec.parse({"name": "orders", "source": SOURCE, "target": "k/copy"})

    assert spec.target_kind == "kafka"
