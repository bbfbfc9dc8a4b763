"""Which rows have one key: the table says so, by the types of its columns, and not what was staged."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.contract.postgres_table import UPSERT, longs

UUID = "aaaaaaaa-0000-0000-0000-000000000001"
SPELLINGS = [
    pytest.param("uuid", [UUID, UUID.upper()], id="uuid"),
    pytest.param("char(8)", ["bob", "bob  "], id="char"),
    pytest.param("inet", ["10.0.0.1", "10.0.0.1/32"], id="inet"),
    pytest.param("interval", ["1 day", "24:00:00"], id="interval"),
    pytest.param(
        "timestamp(0)",
        longs(1, 2).cast(pa.timestamp("us")),
        id="timestamp(0)",
    ),
    pytest.param(
        "{schema}.cents", pa.array([Decimal("1.001"), Decimal("1.002")], pa.decimal128(10, 3)), id="domain"
    ),
    pytest.param("{schema}.outer_id", [UUID, UUID.upper()], id="domain-of-a-domain"),
]
DOMAINS = (
    "CREATE DOMAIN {schema}.cents AS numeric(10,2);"
    "CREATE DOMAIN {schema}.inner_id AS uuid; CREATE DOMAIN {schema}.outer_id AS {schema}.inner_id"
)


@pytest.fixture
def keyed(tables: Any) -> Any:
    return lambda kind, **target: tables(
        f"id {kind} PRIMARY KEY, what text", before=DOMAINS, **UPSERT, **target
    )


@pytest.mark.parametrize(("kind", "spellings"), SPELLINGS)
def test_two_spellings_of_a_key_are_one_row_and_the_newer_wins(keyed: Any, kind: str, spellings: Any) -> None:
    table = keyed(kind)
    table.epoch(1, {"id": spellings, "what": ["older", "newer"]})
    assert (table.rows("what"), table.dead()) == ([("newer",)], [])


@pytest.mark.parametrize(("kind", "spellings"), SPELLINGS)
def test_a_newer_delete_in_another_spelling_deletes(keyed: Any, kind: str, spellings: Any) -> None:
    table = keyed(kind, tombstones="delete")
    table.epoch(1, {"id": spellings[:1], "what": ["there"]})
    table.epoch(2, {"id": spellings, "what": ["again", None]})
    assert (table.rows("what"), table.dead()) == ([], [])


def test_keys_that_are_too_long_are_set_aside_and_none_is_taken_for_another(keyed: Any) -> None:
    table = keyed("varchar(3)", tombstones="delete")
    table.epoch(1, {"id": ["abc", "abcd", "abce"], "what": ["kept", "long", "long"]})
    table.epoch(2, {"id": ["abcd"], "what": [None]})
    assert table.rows() == [("abc", "kept")]
    assert [offset for offset, _, _ in table.dead()] == [1001, 1002]


def test_keys_differ_by_the_collation_of_their_column(tables: Any) -> None:
    table = tables('id text COLLATE "C" PRIMARY KEY, what text', **UPSERT)
    table.epoch(1, {"id": ["b", "B", "b"], "what": ["1", "2", "3"]})
    assert table.rows() == [("B", "2"), ("b", "3")]
