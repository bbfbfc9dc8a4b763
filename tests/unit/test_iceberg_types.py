"""Types of Spark and of Iceberg: exactly, widened, or refused with the cast to write."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, LongType, NestedField, StringType, UUIDType

from airflow_provider_sinks.connectors.iceberg.fit import demand_fit, new_table
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.types import columns_of, created, iceberg_kind
from airflow_provider_sinks.connectors.table_format.types import Conversion, SparkType, conversion, spark_kind
from airflow_provider_sinks.core.errors import ConfigurationError

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": 'odd", name', "type": "long", "nullable": True, "metadata": {}},
        {"name": "inner", "type": {"type": "array", "elementType": "timestamp", "containsNull": True}},
    ],
}
MAP = {"type": "map", "keyType": "string", "valueType": STRUCT, "valueContainsNull": True}
EXACT: list[Any] = [
    *["boolean", "integer", "long", "float", "double", "string", "binary", "date", "timestamp"],
    *["timestamp_ntz", "decimal(1,0)", "decimal(38,38)", STRUCT, MAP],
]


def target(**options: Any) -> IcebergTarget:
    return IcebergTarget.model_validate({"catalog": "lake", "table": "shop.orders", **options})


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_a_table_that_is_made_has_the_type_of_the_query(kind: Any) -> None:
    schema = created({"column": kind})
    assert iceberg_kind(schema.fields[0].field_type) == spark_kind(kind)
    assert len({field.field_id for field in schema.fields}) == 1
    schema_of_all = created({str(number): one for number, one in enumerate(EXACT)})
    assert (
        schema_of_all.highest_field_id == len(EXACT) + 3 + 2 + 3
    )  # of the struct, the map, and what is in it


@pytest.mark.parametrize("kind", ["byte", "short"])
def test_what_iceberg_has_no_type_for_becomes_the_next_larger(kind: str) -> None:
    assert str(created({"column": kind}).fields[0].field_type) == "int"


@pytest.mark.parametrize("kind", ["void", "variant", "interval day to second", "interval year", "time(6)"])
def test_what_iceberg_has_no_place_for_is_refused(kind: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        new_table({"column": kind, "good": "long"}, target(create=True))
    assert (
        f"column 'column': Iceberg has no type for Spark's {kind} (CAST it in the query)"
        in refused.value.detail
    )


@pytest.mark.parametrize(
    ("given", "wanted", "found"),
    [
        ("int", "int", Conversion.NONE),
        ("int", "bigint", Conversion.WIDEN),
        ("bigint", "int", Conversion.REFUSED),
        ("bigint", "double", Conversion.REFUSED),
        ("float", "double", Conversion.WIDEN),
        ("double", "float", Conversion.REFUSED),
        ("decimal(10,2)", "decimal(12,4)", Conversion.WIDEN),
        ("decimal(10,2)", "decimal(11,4)", Conversion.REFUSED),
        ("decimal(10,2)", "decimal(10,1)", Conversion.REFUSED),
        ("bigint", "decimal(19,0)", Conversion.WIDEN),
        ("bigint", "decimal(19,1)", Conversion.REFUSED),
        ("timestamp", "timestamp_ntz", Conversion.REFUSED),
        ("timestamp_ntz", "timestamp", Conversion.REFUSED),
        ("date", "timestamp_ntz", Conversion.WIDEN),
        ("date", "timestamp", Conversion.REFUSED),
        ("int", "string", Conversion.REFUSED),
        ("array<int>", "array<bigint>", Conversion.REFUSED),
    ],
)
def test_nothing_is_changed_without_a_word(given: str, wanted: str, found: Conversion) -> None:
    assert conversion(given, wanted) is found


def test_all_that_does_not_fit_is_told_at_once() -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "ref", UUIDType(), required=False),
        NestedField(3, "tags", ListType(4, StringType(), element_required=True), required=False),
        NestedField(5, "region", StringType(), required=True),
        NestedField(6, "amount", LongType(), required=False),
    )
    spec = PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "region"))
    tags: SparkType = {"type": "array", "elementType": "string", "containsNull": True}
    given: dict[str, SparkType] = {
        "id": "integer",
        "ref": "string",
        "tags": tags,
        "amont": "long",
        "amount": "double",
    }
    with pytest.raises(ConfigurationError) as refused:
        demand_fit(given, target(mode="upsert", key="id"), schema, spec)
    told = refused.value.detail
    for problem in (
        "column 'amont': is not in the table (did you mean \"amount\"?)",
        "column 'region': takes no null, and the query does not give it",
        "column 'ref': is uuid, and the query gives string",
        "column 'tags': tags.element takes no null, which no query can promise",
        "column 'amount': is long, and the query gives double (CAST(amount AS bigint))",
        "target.iceberg.key: the table is partitioned by 'region'",
        "target.iceberg: the table is partitioned by 'region', which the query does not give",
    ):
        assert problem in told
    assert "column 'id'" not in told


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_partition_by_a_column_that_has_nan_and_two_zeros_is_refused(kind: str) -> None:
    given = {"rate": kind, "id": "long"}
    with pytest.raises(ConfigurationError) as refused:
        new_table(given, target(create=True, partition_by=["rate"]))
    assert f"target.iceberg.partition_by[0]: rate is {kind}" in refused.value.detail
    assert "CAST" in refused.value.detail
    schema = created(given)
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "rate"))
    with pytest.raises(ConfigurationError) as refused:
        demand_fit(given, target(), schema, spec)
    assert f"the table is partitioned by 'rate', which is {kind}" in refused.value.detail
    assert "DROP PARTITION FIELD rate" in refused.value.detail


@pytest.mark.parametrize("kind", ["double", STRUCT], ids=["double", "struct"])
def test_a_key_by_which_no_rows_are_equal_is_refused_before_a_table_is_made(kind: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        new_table({"id": kind, "what": "string"}, target(create=True, mode="upsert", key="id"))
    assert "target.iceberg.key: column 'id' is" in refused.value.detail
    assert "no rows are equal by it" in refused.value.detail


def test_a_partition_that_is_named_as_a_column_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        new_table({"at": "timestamp", "at_day": "date"}, target(create=True, partition_by=["day(at)"]))
    assert "partition_by[0]: its field would be called 'at_day', as a column is" in refused.value.detail


def test_columns_that_a_table_needs_are_known() -> None:
    columns = columns_of(created({"id": "long", "what": "string"}, ("id",)))
    assert (columns["id"].is_required, columns["what"].is_required) == (True, False)
