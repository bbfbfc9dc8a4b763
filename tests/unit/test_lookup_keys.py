"""By which columns a query joins a lookup, and how many of their values stand there more than once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_sinks.core.query.lookup_keys import lookup_keys
from airflow_provider_sinks.streaming.lookups import duplicate_keys

_FROM = "SELECT * FROM source s"


@pytest.mark.parametrize(
    ("join", "keys"),
    [
        ("JOIN users USING (id, Name)", [("id", "name")]),
        ("LEFT JOIN users u ON s.id = u.id", [("id",)]),
        ("JOIN users u ON (u.id = s.a AND s.b = u.name AND u.ok)", [("id", "name")]),
        ("JOIN users u ON u.id = s.a OR u.name = s.b", []),
        ("JOIN users u ON u.id > s.a", []),
        ("JOIN users u ON lower(u.id) = s.a", []),
        ("JOIN users u ON `u`.`id` = s.a JOIN users v ON v.name = s.a", [("id",), ("name",)]),
        ("JOIN places p ON p.id = s.a", []),
        ("CROSS JOIN users", []),
    ],
)
def test_keys_are_what_a_join_demands_to_be_equal(join: str, keys: list[tuple[str, ...]]) -> None:
    query = f"{_FROM} {join}"

    assert list(lookup_keys(query, "users", ["id", "name", "ok"])) == keys


def test_keys_in_several_rows_are_counted_and_null_is_no_key() -> None:
    rows = pa.table({"a": ["x", "x", "x", "y", None, None], "b": [1, 1, 2, 1, 1, 1]})

    assert duplicate_keys(rows, ("a",)) == 1
    assert duplicate_keys(rows, ("a", "b")) == 1
    assert duplicate_keys(rows, ("b",)) == 1
    assert duplicate_keys(rows.slice(2, 3), ("a", "b")) == 0
    assert duplicate_keys(rows.slice(0, 0), ("a",)) == 0
