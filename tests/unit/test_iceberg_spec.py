"""What a spec may say about an Iceberg table, and what it is told otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks import Sink, iceberg, kafka
from airflow_provider_sinks.connectors.iceberg.spec import iceberg_sink
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers

SOURCE = {"kafka": {"connection": "k", "topic": "orders", "schema": "id long, what string, at timestamp"}}
COUNTS = "SELECT what, count(*) AS orders FROM source GROUP BY what"


def sink(target: Any = "lake/shop.orders", **parts: Any) -> SinkSpec:
    return SinkSpec.parse({"name": "orders", "source": SOURCE, "target": {"iceberg": target}, **parts})


def table(**options: Any) -> dict[str, Any]:
    return {"catalog": "lake", "table": "shop.orders", **options}


@pytest.mark.parametrize(
    ("target", "parts", "told"),
    [
        (table(mode="upsert"), {}, "target.iceberg: mode upsert needs a key (key: [column])"),
        (table(key="id"), {}, "a key is of no use in mode append (mode: upsert, or leave key out)"),
        (table(table="orders"), {}, "'orders' is not a table (namespace.table, such as shop.orders)"),
        (table(table='shop."x"'), {}, "is not a table"),
        ({"connection": "lake", "table": "a.b"}, {}, "target.iceberg.catalog"),
        (
            table(catalog="http://host:80"),
            {},
            "target.iceberg.catalog: 'http://host:80' is not an Airflow con",
        ),
        ("http://host:80/shop.orders", {}, "target.iceberg.catalog: 'http://host:80' is not an Airflow con"),
        (table(partition_by="what"), {}, "partition_by is for a table that the sink makes (create: true)"),
        (
            table(create=True, partition_by=["day(at"]),
            {},
            "target.iceberg.partition_by[0]: 'day(at' is no partition (a column, or such as day(at)",
        ),
        (table(create=True, partition_by=["dy(at)"]), {}, "'dy' is no transform (did you mean \"day\"?)"),
        (table(create=True, partition_by=["bucket(id)"]), {}, "(bucket(16, id))"),
        (table(create=True, partition_by=["day(att)"]), {}, "'att' is no column of the output"),
        (
            table(create=True, partition_by=["bucket(4, id)", "bucket(8, id)"]),
            {},
            "target.iceberg.partition_by[1]: 'bucket(8, id)' and 'bucket(4, id)' make one field: id_bucket",
        ),
        (
            table(create=True, mode="upsert", key="id", partition_by="what"),
            {},
            "column 'what' is not in the key: a row could not replace one of another partition",
        ),
        (
            table(create=True, properties={"write.py-location-provider.impl": "a.B"}),
            {},
            "'write.py-location-provider.impl' is no property that a sink sets",
        ),
        (
            table(mode="upsert", key="id"),
            {"writers": "per_partition"},
            "writers: per_partition does not go with mode upsert: an epoch must bring each key once",
        ),
        (table(columns=["idd"]), {}, "target.iceberg.columns[0]: 'idd' is no column of the output"),
        (table(), {"dead_letter": "shop.orders"}, "dead_letter.table: 'shop.orders' is target.iceberg.table"),
        (table(), {"progress": "x"}, "progress: is no option of this target (leave it out: the table keeps"),
        (table(), {"query": COUNTS}, "target.iceberg.mode: append would keep each state"),
    ],
)
def test_what_does_not_fit_is_told_with_what_to_write(target: Any, parts: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        sink(target, **parts)
    assert told in refused.value.detail


def test_python_and_yaml_say_the_same() -> None:
    made = Sink(
        name="orders",
        source=kafka("k", "orders", schema="id long, what string, at timestamp"),
        target=iceberg("lake", "shop.orders", create=True, partition_by=["days(at)", "bucket(16, id)"]),
    )
    written = sink(table(create=True, partition_by=["days(at)", "bucket(16, id)"]))
    assert made == written
    assert SinkSpec.parse(__import__("json").loads(written.to_json())) == written
    creation = str(written.creations()[Role.DATA])
    assert creation.endswith("the columns of the query, partitioned by day(at), bucket[16](id)")


def test_the_short_form_names_catalog_and_table() -> None:
    spec = iceberg_sink(sink(dead_letter="shop.dead"))
    assert (spec.target_connection, spec.target.iceberg.table) == ("lake", "shop.orders")
    assert spec.resources == {
        Role.DATA: "shop.orders",
        Role.PROGRESS: "shop.orders",
        Role.DEAD_LETTER: "shop.dead",
    }


def test_rows_that_replace_each_other_have_one_writer() -> None:
    assert sink().writer_mode is Writers.PER_PARTITION
    assert sink(table(mode="upsert", key="id")).writer_mode is Writers.SINGLE
    assert sink(table(mode="upsert", key="what"), query=COUNTS).writer_mode is Writers.SINGLE
