"""What a start may do so that an Iceberg or a Delta table takes a query's columns, and what is never done."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from airflow_provider_sinks.connectors.delta.fit import compare as compare_delta
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.delta.types import created as delta_table
from airflow_provider_sinks.connectors.iceberg.fit import compare as compare_iceberg
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.types import created as iceberg_table
from airflow_provider_sinks.connectors.iceberg.widening import ICEBERG_TYPES
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    Incompatible,
    NeedsMigration,
    SchemaDiff,
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


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            {"delta": {"path": "/lake/orders", "on_schema_change": "widen"}},
            "on_schema_change: widen is not for Delta",
        ),
        (
            {"kafka": {"connection": "k", "topic": "out", "on_schema_change": "widen"}},
            "on_schema_change: is not known (a table has it: postgres, iceberg, delta",
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
