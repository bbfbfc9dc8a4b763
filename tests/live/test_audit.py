"""The demo's audit finds what it is there to find, on a real broker and a real Postgres."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from scripts.demo.audit import Audit, audit, regions_by_user
from scripts.demo.pageviews import fill_table, pageviews
from tests.support import TopicFactory

ROWS = 200  # enough for users with more than one
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Stage:
    """A source that is filled, and two topics that a test fills."""

    broker: KafkaBroker
    database: psycopg.Connection
    source: str
    target: str
    progress: str

    def write(self, topic: str, values: Sequence[dict[str, Any]], *, commit: bool = True) -> None:
        """Write values in one transaction, keyed by user."""
        producer = Producer({**self.broker.client_config(), "transactional.id": topic})
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, json.dumps(value), str(value.get("userid", "")))
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)

    def audit(self) -> Audit:
        regions = regions_by_user(self.database)
        return audit(self.broker, regions, source=self.source, target=self.target, progress=self.progress)


@pytest.fixture
def stage(broker: KafkaBroker, postgres: Postgres, topic: TopicFactory) -> Iterator[Stage]:
    with postgres.connect() as database:
        database.execute("SET search_path = pg_temp")  # a table of this connection only
        fill_table(database)
        made = Stage(broker, database, topic("source"), topic("target"), topic("progress"))
        made.write(made.source, [view._asdict() for view in pageviews(ROWS)])
        yield made


def enriched(stage: Stage) -> Rows:
    regions: dict[str, str] = dict(stage.database.execute("SELECT * FROM users").fetchall())
    return [{**view._asdict(), "region": regions.get(view.userid)} for view in pageviews(ROWS)]


def test_an_exact_target_is_exact(stage: Stage) -> None:
    stage.write(stage.target, enriched(stage))
    stage.write(stage.progress, [{"generation": 1, "epoch": 1, "rows": ROWS}])

    found = stage.audit()

    assert found.is_exact
    assert (found.rows_in, found.rows_out, found.epochs) == (ROWS, ROWS, 1)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        pytest.param(lambda rows: rows[1:], "missing", id="a lost row"),
        pytest.param(lambda rows: [*rows, rows[3]], "duplicates", id="a doubled row"),
        pytest.param(lambda rows: [*rows, {**rows[3], "region": "wrong"}], "unexpected", id="a wrong row"),
        pytest.param(lambda rows: rows[::-1], "out_of_order", id="rows in the wrong order"),
    ],
)
def test_each_fault_is_found(stage: Stage, spoil: Callable[[Rows], Rows], fault: str) -> None:
    stage.write(stage.target, spoil(enriched(stage)))

    found = stage.audit()

    assert not found.is_exact
    assert getattr(found, fault) > 0


def test_an_aborted_transaction_is_not_seen(stage: Stage) -> None:
    stage.write(stage.target, enriched(stage))
    stage.write(stage.target, enriched(stage), commit=False)

    assert stage.audit().is_exact


def test_an_empty_target_is_not_exact(stage: Stage) -> None:
    assert not stage.audit().is_exact
