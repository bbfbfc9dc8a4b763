"""Which sinks copy whole records: only they may leave Spark out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_provider_sinks.core.spec.copies import copies_without_spark
from airflow_provider_sinks.core.spec.sink import SinkSpec

_COPY: Mapping[str, Any] = {"name": "copy", "source": "prod/clicks", "target": "prod/copied"}


def _read(**options: object) -> dict[str, Any]:
    return {"source": {"kafka": {"connection": "prod", "topic": "clicks", "format": "bytes", **options}}}


def _written(**options: object) -> dict[str, Any]:
    return {"target": {"kafka": {"connection": "prod", "topic": "copied", **options}}}


def _parsed(changes: Mapping[str, Any]) -> SinkSpec:
    return SinkSpec.parse({**_COPY, **changes})


COPIES = {
    "the short form": {},
    "texts": _read(format="text"),
    "its one column, by name": {"select": ["value"]},
    "one writer": {"writers": "single"},
    "an endless one": {"trigger": {"every": "1s"}},
    "bytes as texts": _written(format="text"),
    "a topic's own settings": _written(partitions=3, compression="zstd", config={"retention.ms": "1000"}),
}
READ_OTHERWISE = {
    "a column is computed": {"select": ["upper(value) AS value"]},
    "rows are left out": {"where": "value IS NOT NULL"},
    "a query": {"query": "SELECT value FROM source"},
    "records are set aside": {"dead_letter": {"topic": "letters"}},
    "the key is a column": _read(key_as={"column": "k"}) | {"select": ["value"]} | _written(format="bytes"),
    "the user tells Spark how to read": _read(options={"kafkaConsumer.pollTimeoutMs": "1000"}),
    "values are parsed": _read(format="json", schema="a int") | _written(format="json"),
}
WRITTEN_OTHERWISE = {
    "the key is made of a column": {"select": ["value", "1 AS k"]} | _written(key=["k"], value="value"),
    "values are JSON": _written(format="json"),
    "headers go through": _written(headers="source"),
    "times go through": _written(timestamp="source"),
    "a column chooses the partition": _written(partition_by=["value"]),
}


@pytest.mark.parametrize("changes", COPIES.values(), ids=COPIES)
def test_a_sink_that_changes_nothing_copies_whole_records(changes: Mapping[str, Any]) -> None:
    assert copies_without_spark(_parsed(changes), None)


@pytest.mark.parametrize("setting", ["false", "False", False])
def test_the_user_may_let_records_pass_through_spark(setting: object) -> None:
    assert not copies_without_spark(_parsed({}), setting)


@pytest.mark.parametrize("changes", READ_OTHERWISE.values(), ids=READ_OTHERWISE)
def test_a_sink_that_asks_more_of_its_records_does_not(changes: Mapping[str, Any]) -> None:
    assert not copies_without_spark(_parsed(changes), None)


@pytest.mark.parametrize("changes", WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
def test_a_message_that_is_more_than_its_record_is_no_copy(changes: Mapping[str, Any]) -> None:
    spec = _parsed(changes)

    assert not spec.takes_whole_records
    assert not copies_without_spark(spec, None)
