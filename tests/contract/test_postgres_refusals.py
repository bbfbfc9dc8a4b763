"""What Postgres refuses however often it is asked, though no row is the cause: the sink ends, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.core.errors import ConfigurationError
from tests.contract.postgres_table import UPSERT, longs


def test_a_published_table_without_a_replica_identity_ends_the_sink_for_good(tables: Any) -> None:
    table = tables("id bigint NOT NULL UNIQUE, what text", tombstones="delete", **UPSERT)
    published = f"p{table.schema}"
    table.execute(f"CREATE PUBLICATION {published} FOR TABLE {{table}}")
    try:
        with pytest.raises(RejectedRowError, match="refuses what a sink writes") as caught:
            table.epoch(1, {"id": longs(1), "what": ["a"]})
    finally:
        for left in table.made:
            left.close()
        table.execute(f"DROP PUBLICATION {published}")

    assert "does not have a replica identity" in caught.value.detail
    assert "`REPLICA IDENTITY`" in caught.value.hint
    assert (caught.value.retryable, caught.value.row) == (False, None)
    assert (table.rows(), table.dead()) == ([], [])


def test_what_a_trigger_of_the_progress_raises_ends_writer_and_driver_for_good(tables: Any) -> None:
    table = tables("id bigint")
    table.execute(
        "CREATE FUNCTION {schema}.no() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE 'frozen by the administrator'; END $$"
    )
    table.execute(
        "CREATE TRIGGER t BEFORE UPDATE ON {schema}._sinks_progress"
        " FOR EACH ROW EXECUTE FUNCTION {schema}.no()"
    )

    with pytest.raises(RejectedRowError, match="refuses what a sink writes") as writers:
        table.epoch(1, {"id": longs(1)})
    with pytest.raises(ConfigurationError, match="refuses what a sink asks") as drivers:
        table.start.connector.announce(table.start.announcement)
    assert "frozen by the administrator" in writers.value.detail
    assert "frozen by the administrator" in drivers.value.detail
    assert table.rows() == []
