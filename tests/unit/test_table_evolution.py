"""What a start may do so that an Iceberg or a Delta table takes a query's columns, and what is never done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform

from airflow_provider_sinks.connectors.delta.adding import needs_features
from airflow_provider_sinks.connectors.delta.fit import compare as compare_delta
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.delta.types import created as delta_table
from airflow_provider_sinks.connectors.iceberg.fit import compare as compare_iceberg
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.types import created as iceberg_table
from airflow_provider_sinks.connectors.iceberg.widening import ICEBERG_TYPES, put_into
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    Incompatible,
    NeedsMigration,
    SchemaDiff,
    Step,
    WidenColumn,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec

_STRUCT = {
    "type": "struct",
    "fields": [{"name": "a b", "type": "long", "nullable": True, "metadata": {}}],
}


@pytest.mark.parametrize(
    ("given", "own", "expected"),
    [
        ("bigint", "int", "bigint"),
        ("double", "float", "double"),
        ("int", "float", "double"),
        ("decimal(12,2)", "decimal(10,2)", "decimal(12,2)"),
        ("decimal(12,1)", "decimal(10,2)", "decimal(13,2)"),
        ("bigint", "decimal(5,0)", "decimal(19,0)"),
        ("int", "int", None),
        ("int", "bigint", None),
        ("tinyint", "int", None),
        ("decimal(10,3)", "decimal(12,2)", None),
        ("decimal(38,0)", "decimal(10,2)", None),
        ("bigint", "float", None),
        ("bigint", "double", None),
        ("string", "int", None),
        ("double", "int", None),
        ("string", "binary", None),
        ("timestamp", "date", None),
    ],
)
def test_iceberg_widens_only_to_a_type_that_holds_each_value_of_both(
    given: str, own: str, expected: str | None
) -> None:
    assert ICEBERG_TYPES.widened(given, own) == expected


def iceberg(policy: str, given: dict[str, Any], partitioned: bool = False, **options: Any) -> SchemaDiff:
    target = IcebergTarget.model_validate(
        {"catalog": "lake", "table": "shop.orders", "on_schema_change": policy, **options}
    )
    schema: Schema = iceberg_table({"id": "integer", "price": "float"})
    by = (
        PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "by_id"))
        if partitioned
        else PartitionSpec()
    )
    return compare_iceberg(given, target, schema, by)


def delta(policy: str, given: dict[str, Any], **options: Any) -> SchemaDiff:
    target = DeltaTarget.model_validate({"path": "/lake/orders", "on_schema_change": policy, **options})
    return compare_delta(given, target, Layout(delta_table({"id": "integer", "price": "float"})))


def test_iceberg_is_told_all_steps_with_their_statements() -> None:
    given = {"id": "long", "price": "float", "what": _STRUCT}

    assert iceberg("widen", given) == NeedsMigration(
        "shop.orders",
        (WidenColumn("id", "int", "bigint"), AddColumn("what", 'struct<"a b":bigint>', _STRUCT)),
        (
            "ALTER TABLE shop.orders ALTER COLUMN `id` TYPE bigint",
            "ALTER TABLE shop.orders ADD COLUMN `what` struct<`a b`:bigint>",
        ),
    )
    assert iceberg("widen", {"id": "integer"}) == Compatible()


def test_delta_is_told_the_columns_that_are_added() -> None:
    found = delta("add_columns", {"id": "integer", "price": "float", "region": "string"})

    assert isinstance(found, NeedsMigration)
    assert found.steps == (AddColumn("region", "string", "string"),)
    assert delta("add_columns", {"id": "short"}) == Compatible()


@pytest.mark.parametrize(
    ("found", "where", "hint"),
    [
        pytest.param(
            iceberg("refuse", {"id": "integer", "region": "string"}),
            ["region"],
            "With target.iceberg.on_schema_change: add_columns a start adds region.",
            id="Iceberg, a column",
        ),
        pytest.param(
            iceberg("add_columns", {"id": "long", "region": "string"}),
            ["id"],
            "With target.iceberg.on_schema_change: widen a start widens id.",
            id="Iceberg, a type",
        ),
        pytest.param(
            delta("refuse", {"id": "integer", "region": "string"}),
            ["region"],
            "With target.delta.on_schema_change: add_columns a start adds region.",
            id="Delta, a column",
        ),
        pytest.param(delta("add_columns", {"id": "long"}), ["id"], "", id="Delta, a type"),
        pytest.param(
            iceberg("widen", {"id": "long"}, partitioned=True), ["id"], "", id="Iceberg, a partition"
        ),
        pytest.param(
            iceberg("widen", {"id": "long"}, key="id", mode="upsert"), ["id"], "", id="Iceberg, a wider key"
        ),
        pytest.param(iceberg("widen", {"ID": "integer"}), ["ID"], "", id="Iceberg, one name to Spark"),
        pytest.param(delta("add_columns", {"ID": "integer"}), ["ID"], "", id="Delta, one name to Spark"),
        pytest.param(delta("add_columns", {"a b": "integer"}), ["a b"], "", id="Delta, no name"),
        pytest.param(iceberg("widen", {"x": "void"}), ["x"], "", id="Iceberg, no type"),
        pytest.param(iceberg("widen", {"id": "string"}), ["id"], "", id="Iceberg, another kind"),
        pytest.param(
            iceberg("add_columns", {"id": "integer", "by_id": "integer"}, partitioned=True),
            ["by_id"],
            "",
            id="Iceberg, the name of a partition",
        ),
        pytest.param(
            iceberg("add_columns", {"id": "integer", "Part": "string", "part": "string"}),
            ["part"],
            "",
            id="Iceberg, two names that are one to Spark",
        ),
        pytest.param(
            delta("add_columns", {"id": "integer", "Part": "string", "part": "string"}),
            ["part"],
            "",
            id="Delta, two names that are one to Spark",
        ),
        pytest.param(
            delta("add_columns", {"id": "integer", "at": "timestamp_ntz"}),
            ["at"],
            "",
            id="Delta, a type that readers without features cannot read",
        ),
    ],
)
def test_what_may_not_be_done_is_incompatible_with_the_option_that_would_do_it(
    found: SchemaDiff, where: list[str], hint: str
) -> None:
    assert isinstance(found, Incompatible)
    assert [problem.where for problem in found.problems] == [f"column {name!r}" for name in where]
    assert found.hint == hint


_ADDED = "is not in the table, and cannot be added: "


@pytest.mark.parametrize(
    ("found", "what", "hint"),
    [
        pytest.param(
            iceberg("add_columns", {"id": "integer", "by_id": "integer"}, partitioned=True),
            "a field of the table's partitioning, of now or of before, has this name",
            "give it another name in the query, with AS",
            id="the name of a partition",
        ),
        pytest.param(
            delta("add_columns", {"at": "timestamp_ntz"}),
            "readers that know no features of Delta could no longer read it, with timestamp_ntz",
            "CAST(at AS TIMESTAMP) in the query",
            id="a time without a zone",
        ),
        pytest.param(
            delta("refuse", {"ID": "integer"}),
            "it is one with column 'id' to Spark, which tells no letters apart by their case",
            "give it that name, or quite another one, in the query, with AS",
            id="one name to Spark",
        ),
        pytest.param(
            iceberg("add_columns", {"x": "void"}),
            "Iceberg has no type for Spark's void",
            "CAST it in the query",
            id="no type",
        ),
    ],
)
def test_what_is_never_added_is_told_with_the_reason_and_with_what_helps(
    found: SchemaDiff, what: str, hint: str
) -> None:
    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert (problem.what, problem.hint) == (_ADDED + what, hint)


@pytest.mark.parametrize(
    ("field", "needs"),
    [
        ({"name": "timestamp_ntz", "type": "long"}, False),
        ({"name": "at", "type": "timestamp_ntz"}, True),
        ({"name": "at", "type": {"type": "array", "elementType": "timestamp_ntz"}}, True),
        ({"name": "at", "type": {"type": "map", "keyType": "string", "valueType": "timestamp_ntz"}}, True),
        (
            {"name": "a", "type": {"type": "struct", "fields": [{"name": "timestamp_ntz", "type": "long"}]}},
            False,
        ),
        ({"name": "a", "type": {"type": "struct", "fields": [{"name": "b", "type": "timestamp_ntz"}]}}, True),
    ],
)
def test_a_feature_of_delta_is_needed_by_a_type_and_by_no_name(field: dict[str, Any], needs: bool) -> None:
    assert needs_features([field]) is needs


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """An Iceberg table that was partitioned by ``by_id``, and is not any more."""
    catalog = SqlCatalog("lake", uri="sqlite:///:memory:", warehouse=tmp_path.as_uri())
    catalog.create_namespace("shop")
    by = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "by_id"))
    made = catalog.create_table("shop.orders", iceberg_table({"id": "integer"}), partition_spec=by)
    with made.update_spec() as update:
        update.remove_field("by_id")
    yield catalog.load_table("shop.orders")
    catalog.close()


def test_the_name_of_a_partition_that_was_is_refused_before_the_start(table: Table) -> None:
    target = IcebergTarget.model_validate(
        {"catalog": "lake", "table": "shop.orders", "on_schema_change": "add_columns"}
    )
    given = {"id": "integer", "by_id": "long"}
    found = compare_iceberg(given, target, table.schema(), table.spec(), table.specs().values())

    assert isinstance(found, Incompatible)
    assert found.problems[0].where == "column 'by_id'"
    assert table.spec().is_unpartitioned()


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (WidenColumn("id", "int", "string"), "Cannot change column type: id: int -> string"),
        (AddColumn("by_id", "bigint", "long"), "Cannot create partition with a name that exists"),
    ],
)
def test_what_pyiceberg_refuses_is_told_in_our_words(table: Table, step: Step, why: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be altered") as refused:
        put_into(table.transaction(), "shop.orders", [step])

    assert why in refused.value.detail


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            {"delta": {"path": "/lake/orders", "on_schema_change": "widen"}},
            "on_schema_change: widen is not for Delta",
        ),
        (
            {"kafka": {"connection": "k", "topic": "out", "on_schema_change": "widen"}},
            "on_schema_change: is not known (a table has it: delta, iceberg, postgres; the schemas of",
        ),
        (
            {"postgres": {"connection": "p", "table": "a.b", "on_schema_change": "add_column"}},
            "add_columns",
        ),
    ],
)
def test_an_option_that_a_target_does_not_have_is_refused_with_the_way_on(
    target: dict[str, Any], told: str
) -> None:
    source = {"connection": "k", "topic": "in", "format": "json", "schema": "id long"}
    with pytest.raises(ConfigurationError) as refused:
        SinkSpec.parse({"name": "s", "source": {"kafka": source}, "target": target})

    assert told in refused.value.detail
