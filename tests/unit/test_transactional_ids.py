"""Whose transactional ids a start fences, whatever prefix they were made with."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.base import Run
from airflow_provider_sinks.connectors.kafka import connector
from airflow_provider_sinks.connectors.kafka.connector import KafkaConnector
from airflow_provider_sinks.connectors.kafka.transactional_ids import ids_to_fence
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord
from tests.facts import record

OLDEST, BEFORE, NOW = "oldest", "before", "now"


def ids(prefix: str, *writers: str) -> set[str]:
    return {f"{prefix}.orders.{writer}" for writer in writers}


def announced(prefix: str = BEFORE, **changes: Any) -> History:
    """Return the records of a run under a prefix."""
    spec = json.dumps({"transactional_id_prefix": prefix})
    return History({DRIVER: record(**{"spec": spec, "writers": (DRIVER, "p0"), **changes})})


@pytest.mark.parametrize(
    ("history", "alive", "dead"),
    [
        pytest.param(NO_HISTORY, ids(NOW, DRIVER, "p0"), set(), id="a new sink"),
        pytest.param(announced(NOW), ids(NOW, DRIVER, "p0"), set(), id="the same prefix"),
        pytest.param(
            announced(ids=tuple(ids(BEFORE, DRIVER, "p0"))),
            ids(NOW, DRIVER, "p0") | ids(BEFORE, DRIVER, "p0"),
            set(),
            id="another prefix",
        ),
        pytest.param(
            announced(),
            ids(NOW, DRIVER, "p0") | ids(BEFORE, DRIVER, "p0"),
            set(),
            id="a record that does not name them yet",
        ),
        pytest.param(
            announced(ids=tuple(ids(OLDEST, "p7"))),
            ids(NOW, DRIVER, "p0") | ids(BEFORE, DRIVER, "p0"),
            ids(OLDEST, "p7"),
            id="a prefix that was given up before",
        ),
        pytest.param(
            announced(writers=(DRIVER, "p0", "p1", "all")),
            ids(NOW, DRIVER, "p0", "p1", "all") | ids(BEFORE, DRIVER, "p0", "p1", "all"),
            set(),
            id="writers that the spec does not name any more",
        ),
    ],
)
def test_a_start_fences_its_own_ids_and_those_that_the_records_name(
    history: History, alive: set[str], dead: set[str]
) -> None:
    found = ids_to_fence(NOW, "orders", (DRIVER, "p0"), history)

    assert (set(found.alive), set(found.dead)) == (alive, dead)


def test_the_drivers_record_keeps_ids_and_a_writers_record_has_none() -> None:
    named = tuple(sorted(ids(BEFORE, DRIVER, "p0")))

    assert ProgressRecord.decode(record(ids=named).encode()).ids == named
    assert b'"ids"' not in record().encode()


def test_the_ids_of_drivers_are_fenced_before_those_of_writers_under_every_prefix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a task of the old prefix that opens its id in between still finds its driver in force."""
    fenced: list[set[str]] = []

    def note(_: object, names: list[str], __: object) -> list[str]:
        fenced.append(set(names))
        return []

    monkeypatch.setattr(connector, "fence", note)
    monkeypatch.setattr(connector, "fence_dead", note)
    opening = KafkaConnector.__new__(KafkaConnector)
    vars(opening).update(
        _records="taken",
        _spec=SimpleNamespace(name="orders", transactional_id_prefix=NOW, transaction_timeout=None),
        _options=None,
        _fenced=ids(NOW, DRIVER),
    )
    seen: Any = SimpleNamespace(known=announced(ids=tuple(ids(OLDEST, DRIVER, "p0"))))

    assert not opening.open(Run("orders", "run", "source"), ("p0", "p1"), seen)
    assert opening.open(Run("orders", "run", "source"), ("p0", "p1"), seen)

    writers = ids(NOW, "p0", "p1") | ids(BEFORE, "p0", "p1")
    assert fenced == [ids(BEFORE, DRIVER), ids(OLDEST, DRIVER), writers, ids(OLDEST, "p0")]
