"""What a catalog refuses is no doubt, and what is gone or hidden is told; nothing of it is tried for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyiceberg import exceptions
from pyiceberg.catalog.sql import SqlCatalog

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.table_format.errors import HiddenError
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.streaming import patience
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.testing.connector_contract import FIRST
from airflow_provider_sinks.testing.played_start import (
    SINK,
    PlayedStart,
    PlayedTask,
    begins,
    ends,
    rows_of,
)
from tests.contract.iceberg_harness import IcebergHarness

NEXT = {0: range(20, 25)}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.01)


def commit(start: PlayedStart, bound_seconds: float = 0.2) -> bool:
    task = PlayedTask(start, 2, 0, NEXT).go_on()
    assert task.token
    record = start.record(2, begins(NEXT), ends(NEXT), rows=5, rows_total=start.rows_total + 5)
    return commit_staged(start.connector, record, [task.token], Patience(timedelta(seconds=bound_seconds)))


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (exceptions.ForbiddenError("403: no"), ConfigurationError),
        (exceptions.BadRequestError("400: not like this"), ConfigurationError),
        (exceptions.UnauthorizedError("401: who are you"), AuthenticationError),
        (exceptions.AuthorizationExpiredError("419: expired"), AuthenticationError),
        (exceptions.TooManyRequestsError("429: later"), UnavailableError),
        (OSError(28, "No space left on device"), UnavailableError),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_a_commit_that_is_refused_is_no_doubt_and_what_was_staged_is_given_up(
    lake: IcebergHarness, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: type[SinkError]
) -> None:
    start = PlayedStart(lake).start()
    start.epoch(1, FIRST)
    files = sorted(lake.folder.rglob("sinks-*.parquet"))
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", _raising(raised))
        with pytest.raises(told) as failed:
            commit(start)
    assert str(raised.args[-1]) in failed.value.detail
    assert failed.value.connections == ("lake",) or told is UnavailableError
    assert sorted(lake.folder.rglob("sinks-*.parquet")) == files
    assert commit(start)
    assert lake.visible() == rows_of(FIRST, NEXT)


def test_a_right_that_is_revoked_under_a_running_sink_ends_it_with_the_grant(
    lake: IcebergHarness, postgres: Postgres
) -> None:
    PlayedStart(lake).start()
    user = f"writer_{lake.name}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'w'")
        connection.execute(
            f"GRANT SELECT, INSERT, UPDATE ON iceberg_tables, iceberg_namespace_properties TO {user}"
        )
    given = {**lake._options.parameters, "login": user, "password": "w"}
    lake._options = replace(lake._options, parameters=given)
    start = PlayedStart(lake).start()
    start.epoch(1, FIRST)
    with postgres.connect() as connection:
        connection.execute(f"REVOKE UPDATE ON iceberg_tables FROM {user}")
    with pytest.raises(ConfigurationError, match="permission denied") as failed:
        commit(start, bound_seconds=60)
    assert "GRANT UPDATE ON iceberg_tables" in failed.value.hint
    with postgres.connect() as connection:
        connection.execute(f"GRANT UPDATE ON iceberg_tables TO {user}")
    assert commit(start)
    assert lake.visible() == rows_of(FIRST, NEXT)


def test_a_table_of_letters_that_is_dropped_under_a_running_sink_is_a_refusal(lake: IcebergHarness) -> None:
    start = PlayedStart(lake).start()
    dead = lake.table(suffix="_dead")
    dead.catalog.drop_table(dead.name())
    with pytest.raises(RefusedError, match="is gone"):
        start.epoch(1, FIRST, bad=[3])
    again = PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 3), (1, 3)]
    again.epoch(2, NEXT, bad=[22])
    assert lake.set_aside() == [(0, 3), (0, 22), (1, 3)]


def test_a_table_that_is_hidden_is_told_in_our_words_and_a_rollback_says_nothing(
    lake: IcebergHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = PlayedStart(lake).start()
    task = PlayedTask(start, 1, 0, FIRST).go_on()
    assert task.token
    seen = start.connector.identify()[Role.DATA]
    monkeypatch.setattr(TableCatalog, "load", _raising(HiddenError("403: not yours")))
    start.connector.rollback_epoch([task.token])
    start.connector.sweep()
    with pytest.raises(ConfigurationError, match="not yours"):
        start.connector.ensure(lake.creations()[1])
    with pytest.raises(UnavailableError, match="not yours"):
        start.connector.settings(seen)
    with pytest.raises(RefusedError, match="not yours"):
        PlayedStart(lake).open()
    with pytest.raises(RefusedError, match="not yours"):
        start.connector.announce(start.announcement)
    with pytest.raises(RefusedError, match="not yours"):
        start.connector.factory()


def test_settings_of_a_table_that_is_gone_are_told_in_our_words(lake: IcebergHarness) -> None:
    start = PlayedStart(lake).start()
    seen = start.connector.identify()[Role.DATA]
    lake.table().catalog.drop_table(f"shop.{SINK}")
    with pytest.raises(UnavailableError, match="does not exist"):
        start.connector.settings(seen)


def _raising(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail
