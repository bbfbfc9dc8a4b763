"""Dead letters of an Iceberg sink, as its tests commit them, leave them pending, and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from pyiceberg.table import Table

from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.types import created
from airflow_provider_sinks.connectors.table_format.letters import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.core.errors import FencedError, SinkError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart, PlayedTask, begins, ends
from tests.contract.iceberg_harness import IcebergHarness

DEAD = f"shop.{SINK}_dead"
OTHER = "shop.other_dead"


def staged(
    start: PlayedStart, epoch: int, ranges: Mapping[int, range], bad: Sequence[int]
) -> tuple[ProgressRecord, list[Token]]:
    """Let tasks stage an epoch, and return what the driver commits."""
    tasks = [PlayedTask(start, epoch, partition, ranges, bad).go_on() for partition in ranges]
    tokens = [task.token for task in tasks if task.token]
    rows = sum(token.rows for token in tokens)
    record = start.record(epoch, begins(ranges), ends(ranges), rows=rows, rows_total=start.rows_total + rows)
    start.rows_total += rows
    return record, tokens


def commit(start: PlayedStart, epoch: int, ranges: Mapping[int, range], bad: Sequence[int] = ()) -> bool:
    """Commit an epoch as the runtime does."""
    record, tokens = staged(start, epoch, ranges, bad)
    return commit_staged(start.connector, record, tokens, Patience(timedelta(seconds=1)))


def failing(patch: pytest.MonkeyPatch, name: str, error: SinkError) -> None:
    """Let no change of a table come through."""
    real = TableCatalog.commit

    def fail(self: TableCatalog, table: Table, changes: Any) -> None:
        if table.name()[-1] == name:
            raise error
        real(self, table, changes)

    patch.setattr(TableCatalog, "commit", fail)


def leave_pending(start: PlayedStart, lake: IcebergHarness, bad: Sequence[int] = (51,)) -> None:
    """Commit rows of epoch 3, and die before its dead letters are published."""
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, f"{SINK}_dead", FencedError("killed"))
        with pytest.raises(FencedError):
            start.epoch(3, {0: range(50, 55)}, bad=bad)
    assert lake.set_aside() == []


def naming(patch: pytest.MonkeyPatch, lake: IcebergHarness, table: str) -> None:
    """Let the spec name another table of dead letters from here on."""
    given = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
    other = SinkSpec.parse({**given, "dead_letter": {"table": table}})
    patch.setattr(lake, "spec", lambda _=SINK: other)


def by_hand(lake: IcebergHarness, name: str, first: str = "at", location: str | None = None) -> None:
    """Make a table that dead letters fit into.

    :param first: its first column; the others follow in the sink's own order.
    :param location: where it lies; else where its catalog puts it.
    """
    names = sorted(DEAD_LETTER_COLUMNS, key=lambda column: column != first)
    given = created({column: DEAD_LETTER_COLUMNS[column] for column in names})
    lake._reader.create_table(name, given, location, properties={"format-version": "2"})


def of_letters(lake: IcebergHarness, sink: str = SINK) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.table(sink, "_dead").scan().to_arrow().to_pylist()
    return found
