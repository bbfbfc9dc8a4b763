"""Which unique indexes of a table make a key, and what is said of those that do not."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.postgres.unique_indexes import KeyObstacle, UniqueIndex, key_obstacle

TABLE = "shop.orders"
FIT = UniqueIndex("orders_pkey", frozenset({"id"}), is_primary=True)
FOLDED = UniqueIndex("orders_folded", frozenset({"id"}), unlike=("id",))
LATER = UniqueIndex("orders_later", frozenset({"id"}), deferrable="orders_later")
PARTIAL = UniqueIndex("orders_open", frozenset({"id"}), is_partial=True)
MAKE = "CREATE UNIQUE INDEX ON shop.orders (id)"


def repair_of(*indexes: UniqueIndex) -> str:
    found = key_obstacle(TABLE, ("id",), indexes)
    return found.repair if found else ""


@pytest.mark.parametrize("beside", [(), (PARTIAL,), (UniqueIndex("wide", frozenset({"id", "what"})),)])
def test_one_index_that_postgres_goes_by_is_enough_beside_those_that_it_passes_over(
    beside: tuple[UniqueIndex, ...],
) -> None:
    assert key_obstacle(TABLE, ("id",), (*beside, FIT)) is None


def test_an_index_that_postgres_would_go_by_too_must_go_though_a_fit_one_is_there() -> None:
    assert repair_of(FIT, FOLDED) == "DROP INDEX orders_folded"
    assert repair_of(FIT, LATER) == "ALTER TABLE shop.orders DROP CONSTRAINT orders_later"


def test_where_it_is_the_only_one_another_is_made() -> None:
    assert repair_of(FOLDED) == f"DROP INDEX orders_folded; {MAKE}"
    assert repair_of(LATER) == ("ALTER TABLE shop.orders DROP CONSTRAINT orders_later, ADD UNIQUE (id)")


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (PARTIAL, "orders_open is partial"),
        (UniqueIndex("i", frozenset({"id"}), has_expressions=True), "i has an expression"),
        (UniqueIndex("i", frozenset({"id"}), is_of_exclusion=True), "i is of WITHOUT OVERLAPS"),
        (UniqueIndex("i", frozenset({"id"}), is_valid=False), "i is not valid: REINDEX it, or drop it"),
    ],
)
def test_what_postgres_passes_over_is_told_with_its_reason(index: UniqueIndex, why: str) -> None:
    what = f"no unique index of the table has just the columns id ({why})"
    assert key_obstacle(TABLE, ("id",), (index,)) == KeyObstacle(what, MAKE)
