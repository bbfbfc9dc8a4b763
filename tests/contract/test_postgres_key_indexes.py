"""Which indexes of a real table make a key of it: Postgres must call the same rows equal as the sink does."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.core.evolution import Compatible, Incompatible, SchemaDiff
from tests.contract.evolving_start import EvolvingStart
from tests.contract.postgres_table import UPSERT, Table

FOLDED = (
    'CREATE COLLATION {schema}.folded FROM "C"; UPDATE pg_collation SET collisdeterministic = false'
    " WHERE collnamespace = '{schema}'::regnamespace; CREATE TYPE {schema}.price AS (amount numeric)"
)
"""A collation that counts as one which folds letters, whatever the server was built with; and a type that
has two kinds of equality."""
OUTPUT = {"fields": [{"name": "id", "type": "string"}, {"name": "what", "type": "string"}]}


@pytest.fixture
def keyed(tables: Any) -> Any:
    """Make a table for upserts by ``id``, with indexes."""

    def make(definition: str, *statements: str, **target: Any) -> Table:
        table: Table = tables(f"{definition}, what text", before=FOLDED, **{**UPSERT, **target})
        for statement in statements:
            table.execute(statement)
        return table

    return make


def fit(table: Table) -> SchemaDiff:
    return EvolvingStart(table).evolvable().diff(OUTPUT)


def why_not(table: Table) -> str:
    found = fit(table)
    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    return problem.what


@pytest.mark.parametrize(
    ("definition", "statement"),
    [
        ("id text", 'CREATE UNIQUE INDEX ON {table} (id COLLATE "C")'),
        ("id text", "CREATE UNIQUE INDEX ON {table} (id text_pattern_ops)"),
        ("id varchar(9)", "CREATE UNIQUE INDEX ON {table} (id)"),
        ("id text COLLATE {schema}.folded", "CREATE UNIQUE INDEX ON {table} (id)"),
        ("id text", "CREATE UNIQUE INDEX ON {table} (id) NULLS NOT DISTINCT"),
        ("id text", "CREATE UNIQUE INDEX ON {table} (id) INCLUDE (what)"),
        ("id text PRIMARY KEY", "CREATE UNIQUE INDEX ON {table} (id) WHERE what = 'x'"),
        ("id uuid PRIMARY KEY", "CREATE UNIQUE INDEX ON {table} (what)"),
    ],
)
def test_an_index_that_calls_the_same_values_equal_makes_a_key(
    keyed: Any, definition: str, statement: str
) -> None:
    assert fit(keyed(definition, statement)) == Compatible()


@pytest.mark.parametrize(
    "definition", ["id text", "id text PRIMARY KEY"], ids=["the only one", "beside a fit one"]
)
def test_an_index_that_folds_what_its_column_tells_apart_is_refused_with_the_sql_that_mends_it(
    keyed: Any, definition: str
) -> None:
    table = keyed(definition, "CREATE UNIQUE INDEX folds ON {table} (id COLLATE {schema}.folded)")

    assert why_not(table).startswith(f"index {table.schema}.folds calls other values of id equal than")
    mend(table)
    assert fit(table) == Compatible()


def test_an_index_by_other_operators_than_the_column_s_is_refused(keyed: Any) -> None:
    """``(1.0)`` and ``(1.00)`` are one price, and two images of a record."""
    table = keyed("id {schema}.price", "CREATE UNIQUE INDEX images ON {table} (id record_image_ops)")

    assert why_not(table).endswith("by its collation or operators")
    mend(table)
    assert fit(table) == Compatible()


@pytest.mark.parametrize(
    "definition",
    ["id text UNIQUE DEFERRABLE", "id text PRIMARY KEY, UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"],
    ids=["the only one", "beside a fit one"],
)
def test_a_deferrable_constraint_on_the_key_is_refused_with_the_sql_that_mends_it(
    keyed: Any, definition: str
) -> None:
    table = keyed(definition)

    assert "is deferrable: ON CONFLICT takes no such one" in why_not(table)
    mend(table)
    assert fit(table) == Compatible()
    table.epoch(1, {"id": ["a"], "what": ["older"]})
    table.epoch(2, {"id": ["a"], "what": ["newer"]})
    assert table.rows() == [("a", "newer")]


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE UNIQUE INDEX i ON {table} (id) WHERE what IS NOT NULL"], "i is partial"),
        (["CREATE UNIQUE INDEX i ON {table} (lower(id))"], "i has an expression"),
        (
            [
                "CREATE UNIQUE INDEX i ON {table} (id)",
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{schema}.i'::regclass",
            ],
            "i is not valid: REINDEX it, or drop it",
        ),
    ],
    ids=["partial", "expression", "not valid"],
)
def test_an_index_that_postgres_passes_over_is_told_with_its_reason(
    keyed: Any, statements: list[str], why: str
) -> None:
    table = keyed("id text", *statements)

    assert why_not(table) == f"no unique index of the table has just the columns id ({table.schema}.{why})"
    mend(table)
    assert fit(table) == Compatible()


def test_a_key_without_overlaps_is_told_as_none(keyed: Any) -> None:
    table = keyed("id int4range, span tsrange, PRIMARY KEY (id, span WITHOUT OVERLAPS)", key=("id", "span"))
    fields = [{"name": name, "type": "string"} for name in ("id", "span", "what")]

    found = EvolvingStart(table).evolvable().diff({"fields": fields})

    assert isinstance(found, Incompatible)
    assert found.problems[0].what.endswith("_pkey is of WITHOUT OVERLAPS)")


def mend(table: Table) -> None:
    """Run the SQL that a refusal tells."""
    found = fit(table)
    assert isinstance(found, Incompatible)
    table.execute(found.problems[0].hint)
