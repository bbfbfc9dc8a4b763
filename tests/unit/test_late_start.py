"""What ends a launch before the fence: its task is gone, or its executors cannot write."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.streaming import job


class Executors:
    """Stands for the look at the executors."""

    def __init__(self, done: list[str], can_write: bool) -> None:
        self._done = done
        self._can_write = can_write

    def demand(self) -> None:
        self._done.append("executors")
        if not self._can_write:
            raise ConfigurationError("an executor cannot write for this sink")


def _started(
    monkeypatch: pytest.MonkeyPatch,
    wanted: Sequence[str | None],
    *,
    can_write: bool = True,
    copies: bool = False,
) -> tuple[list[str], str]:
    """Return what a launch does where ``wanted`` is what its files say, and what it says itself."""
    done, said, answers = list[str](), list[str](), iter(wanted)
    start = SimpleNamespace(
        connector=None,
        expect=lambda _: None,
        advise=lambda: done.append("looks"),
        run=lambda _: done.append("fences"),
        close=lambda: done.append("closes"),
    )
    for name, played in {
        "kind": lambda _: SimpleNamespace(writer_module="writers"),
        "warm_up": lambda *_: None if copies else Executors(done, can_write),
        "open_session": lambda *_: SimpleNamespace(
            sparkContext=SimpleNamespace(uiWebUrl="", applicationId="")
        ),
        "Start": lambda *_: start,
        "SourceReading": SimpleNamespace(of=lambda *_: SimpleNamespace(spec=None, close=lambda: None)),
        "demand_analysable": lambda *_: None,
        "say": said.append,
    }.items():
        monkeypatch.setattr(job, name, played)
    launched: Any = job._Job.__new__(job._Job)
    vars(launched).update(
        _files=SimpleNamespace(end_wanted=lambda: next(answers)),
        _spec=SimpleNamespace(name="orders", registered_formats=frozenset()),
        _reporter=SimpleNamespace(change=lambda *_, **__: None, waits=None),
        _lookups=SimpleNamespace(without_rows=dict),
        _stream=lambda *_: done.append("streams"),
        **dict.fromkeys(("_launch", "_connections", "_patience")),
    )
    try:
        launched.run()
    except ConfigurationError as error:
        said.append(error.primary)
    return done, "".join(said)


def test_a_launch_that_is_not_wanted_any_more_behind_its_look_fences_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done, said = _started(monkeypatch, [None, "its task is gone"])

    assert done == ["looks", "executors", "closes"]
    assert said == "its task is gone: ending before the start"


def test_a_launch_that_is_not_wanted_any_more_does_not_even_look(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _started(monkeypatch, ["asked to stop"])[0] == ["closes"]


def test_a_launch_that_is_wanted_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = _started(monkeypatch, [None, None])

    assert done == ["looks", "executors", "fences", "streams", "closes"]


def test_a_launch_whose_executors_cannot_write_fences_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    done, said = _started(monkeypatch, [None, None], can_write=False)

    assert done == ["looks", "executors", "closes"]
    assert said == "an executor cannot write for this sink"


def test_a_launch_whose_driver_copies_by_itself_asks_no_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = _started(monkeypatch, [None, None], copies=True)

    assert done == ["looks", "fences", "streams", "closes"]
