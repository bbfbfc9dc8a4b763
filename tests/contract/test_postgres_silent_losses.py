"""What a table does to rows without a word, or to every row alike: told, and not tried again for ever."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.evolution import Compatible, Incompatible
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.evolving_start import EvolvingStart
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_table import KEYED, UPSERT, Table, longs, with_coordinates
from tests.contract.postgres_verdicts import options_of

OUTPUT = {"fields": [{"name": "id", "type": "long"}, {"name": "what", "type": "string"}]}
DROPPED = "a trigger of the table drops the row"
DOMAINS = """
    CREATE DOMAIN {schema}.given AS text NOT NULL;
    CREATE DOMAIN {schema}.outer_given AS {schema}.given;
    CREATE DOMAIN {schema}.any_of_three AS text CHECK (VALUE IN ('a', 'b', 'c'));
    CREATE DOMAIN {schema}.given_or_x AS text DEFAULT 'x' NOT NULL"""


# ---- triggers that drop rows


def drops(table: Table, which: str, on: str = "{table}") -> None:
    """Have a trigger of a table drop rows without a word."""
    table.execute(
        "CREATE FUNCTION {schema}.no() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN IF {which} THEN RETURN NULL; END IF; RETURN NEW; END $$"
    )
    table.execute(f"CREATE TRIGGER t BEFORE INSERT ON {on} FOR EACH ROW EXECUTE FUNCTION {{schema}}.no()")
    table.start = PlayedStart(table).start()


def test_rows_that_a_trigger_drops_are_set_aside_with_the_reason(tables: Any) -> None:
    table = tables("id bigint")
    drops(table, "NEW.id IN (2, 5)")

    taken, record = table.epoch(1, {"id": longs(1, 2, 3)}, {"id": longs(4, 5, 6)})

    assert table.rows() == [(1,), (3,), (4,), (6,)]
    assert table.dead() == [(1001, DROPPED, b"raw"), (1004, DROPPED, b"raw")]
    assert (record.rows, record.dead_total) == (4, 2)
    assert taken.rows + taken.dead == 6


def test_without_dead_letters_a_row_that_a_trigger_drops_ends_the_sink_for_good(tables: Any) -> None:
    table = tables("id bigint", dead_letters=False)
    drops(table, "NEW.id = 2")
    writer = table.open_writer()

    writer.write_batch(with_coordinates({"id": longs(1, 2, 3)}, 1000))

    with pytest.raises(RejectedRowError, match="does not take a row of sink") as caught:
        writer.flush()

    assert f"at offset 1001: Postgres says: {DROPPED}." in caught.value.detail
    writer.rollback_epoch()
    assert table.rows() == []


def test_a_partition_s_trigger_counts_as_the_table_s(tables: Any) -> None:
    table = tables("id bigint")
    table.execute("DROP TABLE {table}; CREATE TABLE {table} (id bigint) PARTITION BY LIST (id)")
    table.execute("CREATE TABLE {schema}.part PARTITION OF {table} DEFAULT")
    drops(table, "NEW.id = 2", on="{schema}.part")

    table.epoch(1, {"id": longs(1, 2, 3)})

    assert (table.rows(), len(table.dead())) == ([(1,), (3,)], 1)


def test_an_upsert_leaves_to_a_trigger_what_it_leaves_out(tables: Any) -> None:
    """Postgres' own trigger against updates that change nothing drops rows likewise."""
    table = tables(KEYED, **UPSERT)
    drops(table, "NEW.id = 2")

    table.epoch(1, {"id": longs(1, 2), "what": ["a", "b"]})

    assert (table.rows(), table.dead()) == ([(1, "a")], [])


# ---- domains that take no null


@pytest.mark.parametrize("domain", ["given", "outer_given"])
def test_a_column_that_is_not_written_and_whose_domain_takes_no_null_is_told_before_the_start(
    tables: Any, domain: str
) -> None:
    table = tables(f"{KEYED}, extra {{schema}}.{domain}", before=DOMAINS)

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.where == "column 'extra'"
    assert problem.what == "takes no null, has no default, and the query does not give it"
    table.execute("ALTER TABLE {table} ALTER extra SET DEFAULT 'a'")
    assert EvolvingStart(table).evolvable().diff(OUTPUT) == Compatible()
    table.start = PlayedStart(table).start()


@pytest.mark.parametrize("domain", ["any_of_three", "given_or_x", "given_or_x NOT NULL"])
def test_a_domain_that_takes_null_or_has_a_default_is_in_nobody_s_way(tables: Any, domain: str) -> None:
    table = tables(f"{KEYED}, extra {{schema}}.{domain}", before=DOMAINS)

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert found == Compatible()
    table.execute("INSERT INTO {table} (id, what) VALUES (1, 'a')")
    assert len(table.rows()) == 1


def test_such_a_column_that_comes_while_the_sink_runs_ends_the_run_instead_of_setting_rows_aside(
    tables: Any,
) -> None:
    table = tables("id bigint", before=DOMAINS)
    writer = table.open_writer()
    table.execute("ALTER TABLE {table} ADD extra {schema}.given")

    writer.write_batch(with_coordinates({"id": longs(1)}, 1000))
    writer.flush()

    with pytest.raises(JobFailedError, match="was altered while sink") as caught:
        writer.pre_commit(table.start.record(1, {0: 1000, 1: 0}, {0: 1001, 1: 0}))

    assert caught.value.detail == "Column 'extra' takes no null, has no default, and is not written."
    writer.rollback_epoch()
    assert (table.rows(), table.dead()) == ([], [])


# ---- a limit of whole transactions


@pytest.fixture
def hurried(postgres: Postgres) -> Iterator[PostgresHarness]:
    """A login whose transactions may take half a second."""
    harness, user = PostgresHarness(postgres), f"u{uuid.uuid4().hex[:12]}"
    harness.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
    harness.direct.execute(f"ALTER ROLE {user} SET transaction_timeout = '500ms'".encode())
    harness.direct.execute(f"GRANT ALL ON SCHEMA {harness.schema} TO {user}".encode())
    options: PostgresOptions = options_of(harness, (user, "secret"))
    harness._options = options
    yield harness
    for left in harness.made:
        left.close()
    harness.direct.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())
    harness.close()


def test_an_epoch_may_take_longer_than_the_server_lets_a_whole_transaction(hurried: PostgresHarness) -> None:
    start = PlayedStart(hurried).start()
    writer = start.factory.prepare("p0")
    assert isinstance(writer, PostgresEpochWriter)
    hurried.made.append(writer)
    writer.open()
    writer.begin_epoch(1)

    writer.write_batch(hurried.batch(0, range(3)))
    writer._live.ask("SELECT pg_sleep(2)::text")
    writer.write_batch(hurried.batch(0, range(3, 5)))
    writer.flush()
    writer.pre_commit(start.record(1, {0: 0, 1: 0}, {0: 5, 1: 0}, rows=5, rows_total=5))
    writer.commit_epoch()

    assert hurried.visible() == [(0, at) for at in range(5)]
