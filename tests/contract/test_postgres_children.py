"""A table that others inherit from, or that inherits, and whose it is: what a start alters of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.postgres import altering
from airflow_provider_sinks.connectors.postgres.preflight import owner_check
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.evolution import Compatible, Incompatible
from tests.contract.evolving_start import EvolvingStart
from tests.contract.evolving_table import OUTPUT, SHAPE, announcement_of
from tests.contract.postgres_table import Table


@pytest.fixture
def table(evolving_table: Table) -> Table:
    return evolving_table


def test_a_table_that_inherits_gets_columns_and_keeps_the_types_of_those_that_it_inherits(
    table: Table,
) -> None:
    table.execute("DROP TABLE {table}; CREATE TABLE {schema}.every (id bigint, what varchar(5))")
    table.execute("CREATE TABLE {table} (own varchar(5)) INHERITS ({schema}.every)")
    start = EvolvingStart(table).begun()

    migration = start.migration({"fields": [*OUTPUT["fields"], {"name": "own", "type": "string"}]})

    assert {step.name for step in migration.steps} == {"region", "own"}
    start.evolvable().apply(migration.steps, announcement_of(start, 1))
    assert [name for name, kind, _ in table.execute(SHAPE) if kind == "text"] == ["own", "region"]


@contextmanager
def written_by_another(table: Table) -> Iterator[str]:
    """Have connectors log in as somebody who may write the tables, and owns none of them."""
    login = f"{table.schema}_writer"
    table.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA {{schema}} TO {login}")
    table.execute(f"GRANT ALL ON {{table}}, {{schema}}._sinks_progress, {{dead}} TO {login}")
    mine = table._options
    table._options = replace(mine, parameters={**mine.parameters, "user": login, "password": "secret"})
    try:
        yield login
    finally:
        for made in table.made:
            made.close()
        owner = table.direct.info.user
        table.execute(f"REASSIGN OWNED BY {login} TO {owner}; DROP OWNED BY {login}; DROP ROLE {login}")


def test_a_login_that_does_not_own_the_table_is_told_who_does(table: Table) -> None:
    with written_by_another(table) as login:
        found = EvolvingStart(table).evolvable().diff(OUTPUT)
        evolvable = EvolvingStart(table).connector.as_schema_evolvable()
        assert isinstance(evolvable, altering.PostgresEvolution)
        check = owner_check("pg", "orders", evolvable.owner())

    assert isinstance(found, Incompatible)
    assert found.primary.endswith("may not be altered")
    assert 'ADD COLUMN "region" text NULL; or GRANT ' in found.hint
    assert found.hint.endswith(f" TO {login};")
    assert (check.outcome, check.hint) == (
        Outcome.UNKNOWN,
        f"GRANT {table.direct.info.user} TO {login}; or leave on_schema_change out.",
    )


def test_a_child_of_another_owner_is_told_before_the_start(table: Table) -> None:
    """``ALTER TABLE`` alters it too, and fails there."""
    table.execute("CREATE TABLE {schema}.child () INHERITS ({table})")
    with written_by_another(table) as login:
        table.execute(f"ALTER TABLE {{table}} OWNER TO {login}")
        found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    owner = table.direct.info.user
    assert found.problems[0].what == f"{table.schema}.child belongs to {owner}, and {login} may not alter it"
    assert found.hint.endswith(f"or GRANT {owner} TO {login};")


def test_what_a_child_has_from_another_parent_too_keeps_its_type(table: Table) -> None:
    table.execute('CREATE TABLE {schema}.beside (what varchar(5) COLLATE "C")')
    table.execute("CREATE TABLE {schema}.child () INHERITS ({table}, {schema}.beside)")
    start = EvolvingStart(table).begun()

    migration = start.migration(OUTPUT)

    assert {step.name for step in migration.steps} == {"id", "region"}
    start.evolvable().apply(migration.steps, announcement_of(start, 1))
    assert start.evolvable().diff(OUTPUT) == Compatible()


def test_a_column_that_a_child_has_is_added_by_its_type_alone(table: Table) -> None:
    table.execute("CREATE TABLE {schema}.child (region integer) INHERITS ({table})")
    start = EvolvingStart(table).begun()

    found = start.evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    assert "what inherits from the table has one of integer" in found.problems[0].what
    table.execute("ALTER TABLE {schema}.child ALTER region TYPE text")
    start.evolvable().apply(start.migration(OUTPUT).steps, announcement_of(start, 1))
    assert ("region", "text", '"default"') in table.execute(SHAPE)
