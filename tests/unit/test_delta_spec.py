"""What a spec may say about a Delta table, and what it is told otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sinks import Sink, delta, kafka
from airflow_provider_sinks.connectors.delta.places import system_of
from airflow_provider_sinks.connectors.delta.spec import delta_sink
from airflow_provider_sinks.connectors.registry import end_types
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers

SOURCE = {"kafka": {"connection": "k", "topic": "orders", "schema": "id long, what string, at timestamp"}}
COUNTS = "SELECT what, count(*) AS orders FROM source GROUP BY what"


def sink(target: Any = "/lake/orders", **parts: Any) -> SinkSpec:
    return SinkSpec.parse({"name": "orders", "source": SOURCE, "target": {"delta": target}, **parts})


def table(**options: Any) -> dict[str, Any]:
    return {"path": "/lake/orders", **options}


@pytest.mark.parametrize(
    ("target", "parts", "told"),
    [
        (table(mode="upsert"), {}, "target.delta: mode upsert needs a key (key: [column])"),
        (table(key="id"), {}, "a key is of no use in mode append (mode: upsert, or leave key out)"),
        (table(path="lake/orders"), {}, "'lake/orders' is no place of a table (a whole path, or s3://bucket"),
        (
            table(path="/lake/../orders"),
            {},
            "is no place of a table (write its whole path, without .. and %)",
        ),
        (table(path="file://localhost/orders"), {}, "is no place of a table (a whole path, such as /data"),
        (table(path="//lake/orders"), {}, "is no place of a table (a whole path, such as /data/orders)"),
        (table(path="/lake/or\\ders"), {}, "is no place of a table (write it without a backslash)"),
        (table(path="ftp://host/orders"), {}, "'ftp' is no storage that is known (one of file, s3"),
        (table(path="s3://me:secret@bucket/orders"), {}, "the place of a table holds a login"),
        (table(path="s3://bucket/orders"), {}, "needs a connection to its storage (connection: <one of"),
        (
            table(path="s3://bucket/orders", connection="http://host:80"),
            {},
            "target.delta.connection: 'http://host:80' is not an Airflow connection id",
        ),
        (table(connection="s"), {}, "'/lake/orders' is a folder: no connection leads there (leave connec"),
        (table(partition_by="what"), {}, "partition_by is for a table that the sink makes (create: true)"),
        (
            table(create=True, partition_by=["day(at)"]),
            {},
            "target.delta.partition_by[0]: 'day(at)' is no column: Delta knows no transforms (make a column",
        ),
        (table(create=True, partition_by=["wat"]), {}, "'wat' is no column of the output"),
        (
            table(create=True, mode="upsert", key="id", partition_by="what"),
            {},
            "column 'what' is not in the key: a row could not replace one of another partition",
        ),
        (
            table(mode="upsert", key="id"),
            {"writers": "per_partition"},
            "writers: per_partition does not go with mode upsert: an epoch must bring each key once",
        ),
        (table(columns=["idd"]), {}, "target.delta.columns[0]: 'idd' is no column of the output"),
        (table(), {"dead_letter": "/lake/orders"}, "dead_letter.path: '/lake/orders' is target.delta.path"),
        (table(), {"dead_letter": "/lake/orders/dead"}, "and target.delta.path lie in each other"),
        (table(), {"dead_letter": "s3://b/dead"}, "is not on the storage of target.delta.path"),
        (table(), {"progress": "x"}, "progress: is no option of this target (leave it out: the table keeps"),
        (table(), {"query": COUNTS}, "target.delta.mode: append would keep each state"),
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
        target=delta("/lake/orders", create=True, partition_by="what"),
    )
    written = sink(table(create=True, partition_by=["what"]))
    assert made == written
    assert SinkSpec.parse(json.loads(written.to_json())) == written
    creation = str(written.creations()[Role.DATA])
    assert creation.endswith("the columns of the query, partitioned by what")


def test_the_short_form_names_the_folder_and_no_connection_is_needed() -> None:
    spec = delta_sink(sink("file:///lake/orders/", dead_letter="/lake/dead"))
    assert (spec.target_connection, spec.target.delta.path) == (None, "/lake/orders")
    assert end_types(spec) == {"k": "kafka"}
    assert spec.resources == {
        Role.DATA: "/lake/orders",
        Role.PROGRESS: "/lake/orders",
        Role.DEAD_LETTER: "/lake/dead",
    }


def test_a_table_on_an_object_store_needs_a_connection_of_its_type() -> None:
    spec = sink(table(path="s3://bucket/orders", connection="store"))
    assert end_types(spec) == {"k": "kafka", "store": "delta"}
    assert system_of("s3://bucket/orders") != system_of("s3://other/orders")
    azure = "abfss://container@account.dfs.core.windows.net/orders"
    assert delta_sink(sink(table(path=azure, connection="store"))).target.delta.path == azure


def test_rows_that_replace_each_other_have_one_writer() -> None:
    assert sink().writer_mode is Writers.PER_PARTITION
    assert sink(table(mode="upsert", key="id")).writer_mode is Writers.SINGLE
    assert sink(table(mode="upsert", key="what"), query=COUNTS).writer_mode is Writers.SINGLE
