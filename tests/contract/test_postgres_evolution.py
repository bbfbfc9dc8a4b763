"""A start alters a Postgres table and announces itself: both, or neither, however often it is tried."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors.postgres import altering
from airflow_provider_sinks.core.errors import ConfigurationError, FencedError, UnavailableError
from airflow_provider_sinks.core.evolution import Compatible, Incompatible, NeedsMigration
from tests.contract.evolving_start import EvolvingStart
from tests.contract.evolving_table import OUTPUT, SHAPE, announcement_of
from tests.contract.postgres_table import Table, longs, with_coordinates

BEFORE = [("id", "integer", "-"), ("what", "character varying(5)", '"C"')]
AFTER = [("id", "bigint", "-"), ("what", "text", '"C"'), ("region", "text", '"default"')]


@pytest.fixture
def table(evolving_table: Table) -> Table:
    return evolving_table


def _is_untouched(table: Table) -> bool:
    return table.execute(SHAPE) == BEFORE


def test_a_table_is_altered_once_with_the_announcement_and_written_by_its_new_columns(table: Table) -> None:
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)

    for _ in range(2):  # the answer to the first commit may be lost
        start.evolvable().apply(steps, record)

    assert table.execute(SHAPE) == AFTER
    assert start.evolvable().diff(OUTPUT) == Compatible()
    assert start.connector.progress().in_force == record
    table.start = start
    start.factory = start.connector.factory()
    writer = table.open_writer()
    writer.write_batch(
        with_coordinates({"id": longs(2**40), "what": ["longer than five"], "region": ["eu"]}, 2000)
    )
    writer.flush()
    writer.pre_commit(start.record(2, {0: 2000, 1: 0}, {0: 2001, 1: 0}, rows=1, rows_total=2))
    writer.commit_epoch()
    assert table.rows() == [(1, "a", None), (2**40, "longer than five", "eu")]


def test_the_writers_of_a_run_before_commit_nothing_into_an_altered_table(table: Table) -> None:
    older, epoch = table.start, {"id": pa.array([2], pa.int32()), "what": ["b"]}
    start = EvolvingStart(table).begun()
    start.evolvable().apply(start.migration(OUTPUT).steps, announcement_of(start, 1))

    with pytest.raises(FencedError):
        older.connector.demand_in_force()
    with pytest.raises(FencedError):
        table.epoch(2, epoch)
    assert table.rows("id") == [(1,)]


def test_a_table_that_was_altered_before_the_announcement_is_written_as_it_is_then(table: Table) -> None:
    start = EvolvingStart(table).begun()
    output: Any = SimpleNamespace(dtypes=[("id", "bigint"), ("what", "string"), ("region", "string")])
    start.connector.expect(output)
    migration = start.migration(OUTPUT)
    for text in migration.statements:
        table.execute(text)
    assert start.evolvable().diff(OUTPUT) == Compatible()

    start.connector.announce(announcement_of(start, 0))

    assert start.connector.factory()


def test_a_column_of_the_partition_key_is_left_as_it_is(table: Table) -> None:
    columns = "id bigint, what varchar(5), region varchar(2)"
    table.execute(
        "DROP TABLE {table}; CREATE TABLE {table} ({columns}) PARTITION BY LIST (region)", columns=columns
    )

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, NeedsMigration)
    assert {step.name for step in found.steps} == {"what"}


@pytest.mark.parametrize(
    ("definition", "fixed"),
    [
        pytest.param("PARTITION BY RANGE ((lower(what)))", {"what"}, id="an expression"),
        pytest.param(
            "PARTITION BY RANGE (id, (lower(what)))", {"id", "what"}, id="a column and an expression"
        ),
        pytest.param(
            "PARTITION BY RANGE (id); CREATE TABLE {schema}.part PARTITION OF {table} "
            "FOR VALUES FROM (0) TO (9) PARTITION BY LIST (what)",
            {"id", "what"},
            id="a partition's own",
        ),
    ],
)
def test_what_partitions_go_by_is_left_as_it_is(table: Table, definition: str, fixed: set[str]) -> None:
    table.execute(f"DROP TABLE {{table}}; CREATE TABLE {{table}} (id integer, what varchar(5)) {definition}")
    start = EvolvingStart(table).begun()

    found = start.evolvable().diff({"fields": [{"name": "id", "type": "integer"}, *OUTPUT["fields"][1:]]})

    assert isinstance(found, NeedsMigration)
    assert {step.name for step in found.steps} == {"what", "region"} - fixed
    start.evolvable().apply(found.steps, announcement_of(start, 1))
    assert ("region", "text", '"default"') in table.execute(SHAPE)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("CREATE TABLE {table} PARTITION OF {schema}.every DEFAULT", "has just the columns of TABLE "),
        ("CREATE TABLE {table} OF {schema}.kind", "has just the columns of TYPE "),
    ],
)
def test_a_table_whose_columns_are_anothers_is_refused_before_the_start(
    table: Table, definition: str, why: str
) -> None:
    columns = "id bigint, what varchar(5)"
    table.execute("DROP TABLE {table}; CREATE TYPE {schema}.kind AS ({columns})", columns=columns)
    table.execute("CREATE TABLE {schema}.every ({columns}) PARTITION BY LIST (id)", columns=columns)
    table.execute(definition)

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.where == "column 'region'"
    assert why in problem.what


def test_a_check_that_the_wider_rows_fail_is_told_as_what_no_retry_helps(table: Table) -> None:
    table.execute("ALTER TABLE {table} ADD COLUMN price real CHECK (price::text = '0.1')")
    table.execute("UPDATE {table} SET price = 0.1")
    start = EvolvingStart(table).begun()
    output = {"fields": [{"name": "id", "type": "integer"}, {"name": "price", "type": "double"}]}
    migration = start.migration(output)

    with pytest.raises(ConfigurationError, match="cannot be altered") as refused:
        start.evolvable().apply(migration.steps, announcement_of(start, 1))
    assert "check constraint" in refused.value.detail


def test_a_statement_that_takes_too_long_is_told_as_what_a_retry_may_help(table: Table) -> None:
    slow = "CREATE OR REPLACE FUNCTION {schema}.slow(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT {body}'"
    table.execute(slow, body="true")
    table.execute("ALTER TABLE {table} ADD CHECK ({schema}.slow(id))")
    table.execute(slow, body="pg_sleep(5) IS NOT NULL")
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)
    evolvable = start.evolvable()
    assert isinstance(evolvable, altering.PostgresEvolution)
    evolvable.control.ask(lambda connection: connection.execute("SET statement_timeout = '1s'"))

    with pytest.raises(UnavailableError, match="was not altered in time"):
        evolvable.apply(steps, record)
    assert _is_untouched(table)


def test_a_start_that_is_overtaken_alters_nothing(table: Table) -> None:
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)
    EvolvingStart(table).begun()

    with pytest.raises(FencedError):
        start.evolvable().apply(steps, record)
    assert _is_untouched(table)


def test_a_table_that_is_in_use_is_waited_for_and_then_left_alone(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(altering, "LOCK", timedelta(milliseconds=200))
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)

    with table.direct.transaction():
        table.execute("SELECT FROM {table}")
        with pytest.raises(UnavailableError, match="somebody uses it") as refused:
            start.evolvable().apply(steps, record)
    assert "not free within 0.2 s; nothing was changed" in refused.value.detail
    assert _is_untouched(table)
    assert start.connector.progress().in_force != record


def test_what_is_in_the_way_of_one_step_leaves_all_undone_and_is_told(table: Table) -> None:
    table.execute("CREATE VIEW {schema}.seen AS SELECT what FROM {table}")
    start = EvolvingStart(table).begun()

    with pytest.raises(ConfigurationError, match="cannot be altered") as refused:
        start.evolvable().apply(start.migration(OUTPUT).steps, announcement_of(start, 1))
    assert "cannot alter type of a column used by a view" in refused.value.detail
    assert 'ALTER COLUMN "what" TYPE text' in refused.value.detail
    assert _is_untouched(table)


def test_a_table_that_was_swapped_or_altered_since_the_look_is_compared_anew(table: Table) -> None:
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)
    table.execute("ALTER TABLE {table} ADD COLUMN region integer")

    with pytest.raises(UnavailableError, match="was altered by somebody else meanwhile"):
        start.evolvable().apply(steps, record)
    table.execute("ALTER TABLE {table} DROP COLUMN region; ALTER TABLE {table} RENAME TO was")
    table.execute("CREATE TABLE {table} (LIKE {schema}.was INCLUDING ALL)")
    with pytest.raises(UnavailableError, match="was altered by somebody else meanwhile"):
        start.evolvable().apply(steps, record)
    assert _is_untouched(table)


def test_a_table_beside_it_that_is_in_use_is_waited_for_as_the_table_itself(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(altering, "LOCK", timedelta(milliseconds=200))
    table.execute("CREATE TABLE {schema}.beside (id integer PRIMARY KEY)")
    table.execute("ALTER TABLE {table} ADD ref integer REFERENCES {schema}.beside")
    start = EvolvingStart(table).begun()
    steps = start.migration({"fields": [*OUTPUT["fields"], {"name": "ref", "type": "long"}]}).steps

    with table.direct.transaction():
        table.execute("SELECT FROM {schema}.beside")
        with pytest.raises(UnavailableError, match="somebody uses it"):
            start.evolvable().apply(steps, announcement_of(start, 1))


def test_an_announcement_that_was_undone_is_not_taken_for_one(table: Table) -> None:
    start = EvolvingStart(table).begun()
    steps, record = start.migration(OUTPUT).steps, announcement_of(start, 1)
    table.execute("ALTER TABLE {table} ADD COLUMN region integer")
    with pytest.raises(UnavailableError, match="was altered by somebody else meanwhile"):
        start.evolvable().apply(steps, record)

    start.connector.demand_in_force()
    table.execute("ALTER TABLE {table} DROP COLUMN region")
    start.evolvable().apply(steps, record)
    assert table.execute(SHAPE) == AFTER
