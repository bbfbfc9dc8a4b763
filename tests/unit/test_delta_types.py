"""Types of Spark and of Delta: exactly, widened, or refused with the cast to write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sinks.connectors.delta.fit import demand_fit, new_table
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.core.errors import ConfigurationError

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "long", "nullable": False, "metadata": {"x": 1}},
        {
            "name": "inner",
            "type": {"type": "array", "elementType": "timestamp", "containsNull": False},
            "nullable": True,
            "metadata": {},
        },
    ],
}
MAP = {"type": "map", "keyType": "string", "valueType": STRUCT, "valueContainsNull": False}
EXACT: list[Any] = [
    *["boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"],
    *["timestamp", "timestamp_ntz", "decimal(1,0)", "decimal(38,38)", STRUCT, MAP],
]


def target(**options: Any) -> DeltaTarget:
    return DeltaTarget.model_validate({"path": "/lake/orders", "create": True, **options})


def layout(*by: str, nullable: bool = True, **columns: Any) -> Layout:
    fields = [
        {"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind in columns.items()
    ]
    return Layout(json.dumps({"type": "struct", "fields": fields}), by)


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_a_table_that_is_made_takes_just_what_it_was_made_of(kind: Any) -> None:
    made = new_table({"x": kind}, target())
    demand_fit({"x": kind}, target(), made)
    assert made.columns["x"].kind
    assert not made.columns["x"].is_required


@pytest.mark.parametrize("kind", ["interval day", "variant", "void", {"type": "udt"}], ids=str)
def test_a_type_that_delta_does_not_have_is_told_by_its_column(kind: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        new_table({"ok": "long", "x": {"type": "array", "elementType": kind}}, target())
    assert "column 'x.element': Delta has no type for Spark's" in refused.value.detail
    assert "CAST it in the query" in refused.value.detail


def test_all_that_does_not_fit_is_told_at_once() -> None:
    table = layout("region", id="long", at="timestamp", what="string", region="string")
    with pytest.raises(ConfigurationError) as refused:
        demand_fit({"id": "double", "at": "string", "wat": "string"}, target(), table)
    for told in (
        "column 'wat': is not in the table (did you mean \"what\"?)",
        "column 'id': is bigint, and the query gives double (CAST(id AS bigint))",
        "column 'at': is timestamp, and the query gives string (CAST(at AS timestamp))",
        "target.delta: the table is partitioned by 'region', which the query does not give",
    ):
        assert told in refused.value.detail


def test_what_takes_no_null_must_be_given_and_inside_of_a_column_nobody_can_promise_it() -> None:
    with pytest.raises(ConfigurationError) as refused:
        demand_fit({"x": STRUCT}, target(), layout(nullable=False, x=STRUCT, y="long"))
    assert "column 'y': takes no null, and the query does not give it" in refused.value.detail
    assert "column 'x': x.a takes no null, which no query can promise" in refused.value.detail


def test_a_column_is_widened_where_no_value_changes() -> None:
    given = {"a": "integer", "b": "byte", "c": "float", "d": "decimal(5,2)", "e": "date"}
    wide: dict[str, Any] = {
        "a": "long",
        "b": "short",
        "c": "double",
        "d": "decimal(10,3)",
        "e": "timestamp_ntz",
    }
    demand_fit(given, target(), layout(**wide))
    with pytest.raises(ConfigurationError, match="column 'a': is int, and the query gives bigint"):
        demand_fit({"a": "long"}, target(), layout(a="integer"))


@pytest.mark.parametrize(
    "kind", ["double", "timestamp", "timestamp_ntz", "binary", "decimal(10,2)", STRUCT], ids=str
)
def test_a_partition_that_would_read_as_something_else_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="would not read as what was written"):
        new_table({"x": kind, "y": "long"}, target(partition_by="x"))
    with pytest.raises(ConfigurationError, match="would not read as what was written"):
        demand_fit({"x": kind, "y": "long"}, target(), layout("x", x=kind, y="long"))


@pytest.mark.parametrize("kind", ["double", "float", STRUCT], ids=str)
def test_a_key_by_which_no_rows_are_equal_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="no rows are equal by it"):
        new_table({"x": kind}, target(mode="upsert", key="x"))


def test_a_partition_that_is_not_in_the_key_is_refused_of_a_table_that_is_there() -> None:
    with pytest.raises(ConfigurationError, match="a row could not replace one of another partition"):
        demand_fit(
            {"id": "long", "day": "date"},
            target(mode="upsert", key="id"),
            layout("day", id="long", day="date"),
        )


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a b": "long"}, "column 'a b': Delta takes none of"),
        ({"id": "long", "ID": "long"}, "are one to Delta"),
    ],
)
def test_names_that_delta_does_not_take_are_told(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        new_table(columns, target())
