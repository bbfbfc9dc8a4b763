"""What a start may do so that a Postgres table takes a query's columns, and what is never done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.postgres.evolution import compare, evolved, widened
from airflow_provider_sinks.connectors.postgres.fit import new_table
from airflow_provider_sinks.connectors.postgres.layout import Layout
from airflow_provider_sinks.connectors.postgres.row_errors import is_of_a_moment
from airflow_provider_sinks.connectors.postgres.spec import PostgresTarget
from airflow_provider_sinks.connectors.postgres.types import Column
from airflow_provider_sinks.connectors.postgres.unique_indexes import UniqueIndex
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    Incompatible,
    NeedsMigration,
    WidenColumn,
)


def target(policy: str, **options: object) -> PostgresTarget:
    given = {"connection": "pg", "table": "public.orders", "on_schema_change": policy}
    return PostgresTarget.model_validate({**given, **options})


def column(kind: str, name: str = "c", **more: object) -> Column:
    return Column(name, kind, kind.partition("(")[0], exact=kind, **more)  # type: ignore[arg-type]


def table(*columns: Column) -> Layout:
    return Layout({column.name: column for column in columns}, (UniqueIndex("pk", frozenset({"id"})),))


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("bigint", "integer", "bigint"),
        ("int", "smallint", "integer"),
        ("bigint", "smallint", "bigint"),
        ("double", "real", "double precision"),
        ("int", "real", "double precision"),
        ("string", "character varying(10)", "text"),
        ("int", "character varying(3)", "text"),
        ("decimal(12,2)", "numeric(10,2)", "numeric(12,2)"),
        ("decimal(12,1)", "numeric(10,2)", "numeric(13,2)"),
        ("bigint", "numeric(5,0)", "numeric(19,0)"),
        ("int", "integer", None),
        ("int", "bigint", None),
        ("float", "double precision", None),
        ("string", "text", None),
        ("string", "character varying", None),
        ("decimal(8,2)", "numeric(10,2)", None),
        ("decimal(10,3)", "numeric(10,2)", None),
        ("decimal(14,3)", "numeric(10,2)", None),
        ("decimal(38,0)", "numeric(10,2)", None),
        ("decimal(38,0)", "bigint", None),
        ("double", "integer", None),
        ("bigint", "real", None),
        ("string", "integer", None),
        ("int", "text", None),
        ("string", "character(3)", None),
        ("timestamp", "date", None),
        ("timestamp", "timestamp without time zone", None),
        ("struct<a:int>", "text", None),
    ],
)
def test_a_type_is_widened_only_to_one_that_holds_each_value_of_both(
    given: str, kind: str, expected: str | None
) -> None:
    assert widened(given, column(kind)) == expected


def test_a_domain_and_a_generated_column_stay_as_they_are() -> None:
    domain = Column("c", "pennies", "integer", exact="integer")
    assert widened("bigint", domain) is None
    assert widened("bigint", column("integer", is_generated=True)) is None


_GIVEN = {"id": "bigint", "price": "double", "colour": "string"}
_TABLE = table(column("bigint", "id"), column("real", "price"))


def test_all_steps_are_told_with_their_statements_and_lead_to_a_table_that_fits() -> None:
    found = compare(_GIVEN, target("widen"), _TABLE)

    assert found == NeedsMigration(
        "public.orders",
        (WidenColumn("price", "real", "double precision"), AddColumn("colour", "text", "string")),
        (
            'ALTER TABLE "public"."orders" ALTER COLUMN "price" TYPE double precision',
            'ALTER TABLE "public"."orders" ADD COLUMN "colour" text NULL',
        ),
    )
    assert compare(_GIVEN, target("refuse"), evolved(_TABLE, found.steps)) == Compatible()
    assert [*found.told()][1] == (
        "alter data table \"public.orders\": add column 'colour' as text, null in the rows before: "
        'ALTER TABLE "public"."orders" ADD COLUMN "colour" text NULL'
    )


@pytest.mark.parametrize(
    ("policy", "problems", "hint"),
    [
        ("refuse", ["price", "colour"], "on_schema_change: widen a start adds colour and widens price."),
        ("add_columns", ["price"], "With target.postgres.on_schema_change: widen a start widens price."),
    ],
)
def test_what_the_option_does_not_allow_is_told_with_the_option_that_does(
    policy: str, problems: list[str], hint: str
) -> None:
    found = compare(_GIVEN, target(policy), _TABLE)

    assert isinstance(found, Incompatible)
    assert sorted(problem.where for problem in found.problems) == sorted(f"column {n!r}" for n in problems)
    assert found.hint.endswith(hint)


def test_columns_alone_need_no_more_than_add_columns() -> None:
    found = compare({"id": "bigint", "colour": "string"}, target("refuse"), _TABLE)

    assert isinstance(found, Incompatible)
    assert found.hint == "With target.postgres.on_schema_change: add_columns a start adds colour."


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ID", "one with column 'id' to Spark"),
        ("xmin", "Postgres alone writes"),
        ("ctid", "Postgres alone writes"),
    ],
)
@pytest.mark.parametrize("policy", ["refuse", "add_columns"])
def test_a_column_that_is_there_but_for_its_case_or_by_nature_is_told_so(
    name: str, why: str, policy: str
) -> None:
    found = compare({"id": "bigint", name: "bigint"}, target(policy), _TABLE)

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.where == f"column {name!r}"
    assert why in problem.what
    assert problem.hint.endswith("in the query, with AS")
    assert found.hint == ""


def test_a_table_is_not_made_with_a_column_that_each_has() -> None:
    with pytest.raises(ConfigurationError, match="cannot be made") as refused:
        new_table({"id": "bigint", "ctid": "string"}, target("refuse"))

    assert "column 'ctid': each table of Postgres has one of this name" in refused.value.detail


@pytest.mark.parametrize(
    ("ruled_by", "hint"),
    [
        ("TABLE all_orders", "ALTER TABLE all_orders ADD COLUMN"),
        ("TYPE an_order", "ALTER TYPE an_order ADD ATTR"),
    ],
)
def test_a_table_whose_columns_another_rules_gets_none_of_its_own(ruled_by: str, hint: str) -> None:
    given = {"id": "bigint", "price": "float", "colour": "string"}
    found = compare(given, target("widen"), replace(_TABLE, ruled_by=ruled_by))

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.what.endswith(f"the table has just the columns of {ruled_by}")
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize(
    ("state", "passes"),
    [
        *((state, True) for state in ("57014", "57P01", "40P01", "53100", "08006", "25P04", "")),
        *((state, True) for state in ("55P03", "55006")),
        *(
            (state, False)
            for state in ("23514", "23502", "22003", "2BP01", "0A000", "42501", "54011", "P0001", "55000")
        ),
    ],
)
def test_what_a_statement_says_of_itself_or_of_the_rows_does_not_pass_by_itself(
    state: str, passes: bool
) -> None:
    assert is_of_a_moment(state) is passes


def test_a_column_whose_type_nobody_may_change_stays_as_it_is() -> None:
    here = table(column("bigint", "id"), column("character varying(2)", "region", is_fixed=True))

    assert compare({"id": "bigint", "region": "string"}, target("widen"), here) == Compatible()


@pytest.mark.parametrize(("below", "is_told"), [("integer", True), ("integer, text", True), ("text", False)])
def test_a_column_that_a_child_has_by_another_type_is_not_added(below: str, is_told: bool) -> None:
    here = replace(_TABLE, below={"colour": below})
    found = compare({"id": "bigint", "colour": "string"}, target("widen"), here)

    assert isinstance(found, Incompatible) is is_told
    if isinstance(found, Incompatible):
        (problem,) = found.problems
        assert problem.what.endswith(f"what inherits from the table has one of {below}")


def test_names_and_collations_are_quoted_into_the_statement() -> None:
    name = 'we"ird; DROP'
    here = table(column("bigint", "id"), column("character varying(3)", name, collation='pg_catalog."C"'))
    found = compare({"id": "bigint", name: "string"}, target("widen"), here)

    assert isinstance(found, NeedsMigration)
    assert found.statements == (
        'ALTER TABLE "public"."orders" ALTER COLUMN "we""ird; DROP" TYPE text COLLATE pg_catalog."C"',
    )


@pytest.mark.parametrize(
    ("given", "here", "options", "problem"),
    [
        pytest.param(
            {"id": "string"}, {"id": "bigint"}, {}, "is bigint, and the query gives string", id="another kind"
        ),
        pytest.param(
            {"id": "bigint"},
            {"id": "bigint", "was": "text"},
            {},
            "takes no null, has no default, and the query does not give it",
            id="renamed away from a column that takes no null",
        ),
        pytest.param(
            {"id": "double"},
            {"id": "real"},
            {"key": "id", "mode": "upsert"},
            "is real, and the query gives double",
            id="a wider key",
        ),
        pytest.param(
            {"id": "bigint", "part": "int"},
            {"id": "bigint"},
            {"key": ["id", "part"], "mode": "upsert"},
            "is not in the table",
            id="a new column of the key",
        ),
        pytest.param(
            {"id": "bigint", "v": "void"},
            {"id": "bigint"},
            {},
            "is not in the table, and cannot be added: Postgres has no type for Spark's void",
            id="no type",
        ),
        pytest.param(
            {"id": "bigint", "n" * 64: "int"},
            {"id": "bigint"},
            {},
            "is not in the table, and cannot be added: "
            "its name has 64 bytes, and Postgres cuts names off at 63",
            id="cut off name",
        ),
    ],
)
def test_what_no_step_mends_is_incompatible_whatever_the_option_says(
    given: dict[str, str], here: dict[str, str], options: dict[str, object], problem: str
) -> None:
    columns = [column(kind, name, is_required=name == "was") for name, kind in here.items()]
    found = compare(given, target("widen", **options), table(*columns))

    assert isinstance(found, Incompatible)
    assert problem in [one.what for one in found.problems]
    assert found.hint == ""
