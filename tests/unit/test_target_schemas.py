"""What a start would do about the schemas of a target where the registry has what is no Avro of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from airflow_provider_sinks.clients.schema_registry import confluent
from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.kafka.envelope_encoding import has_value
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_sink
from airflow_provider_sinks.connectors.kafka.written_schemas import TargetSchemas, part_columns
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.answering_registry import Answers, answering

SUBJECT = "/subjects/out-value"
COLUMN = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
OUTPUT = {"type": "struct", "fields": [COLUMN]}
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
REFERENCE = {"name": "Order", "subject": "orders", "version": 7}


def sink(**target: Any) -> KafkaSink:
    """Return a sink that writes Avro."""
    source = {"connection": "k", "topic": "in", "format": "json", "schema": "id long"}
    avro = {"connection": "k", "topic": "out", "format": "avro", "registry": "r", **target}
    return kafka_sink(SinkSpec.parse({"name": "s", "source": {"kafka": source}, "target": {"kafka": avro}}))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """A registry whose subject has one version."""
    monkeypatch.setitem(confluent._PATIENCE, "max.retries", 0)
    with answering() as made:
        made.by_path["/config/out-value"] = 200, {"compatibilityLevel": "NONE"}
        yield made


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        ({"schema": "{}", "schemaType": "JSON"}, "is of kind JSON, and format is avro"),
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, "is of kind PROTOBUF, and format is avro"),
        ({"schema": '{"type": "recrod"}'}, "'recrod' is no type"),
        ({"schema": "{"}, "is not JSON"),
        (
            {"schema": ORDER.replace("long", "shop.Id"), "references": [REFERENCE]},
            'refers to what is not there: Order: subject "orders" has no version 7',
        ),
    ],
)
def test_a_newest_version_that_is_nothing_to_compare_with_is_named(
    answers: Answers, newest: dict[str, Any], said: str
) -> None:
    answers.by_path[f"{SUBJECT}/versions/latest"] = 200, {"id": 4, "version": 3, **newest}

    with (
        closing(SchemaRegistry(RegistryOptions("r", {"url": answers.url}))) as registry,
        pytest.raises(ConfigurationError) as refused,
    ):
        TargetSchemas(sink(), registry).plan(OUTPUT)

    [problem] = refused.value.problems
    assert problem.where == 'version 3 of subject "out-value"'
    assert said in problem.what
    assert "subjects" in refused.value.hint


@pytest.mark.parametrize("names", [["id"], ["id", "kind"]])
def test_a_sink_that_would_delete_with_each_row_is_refused(names: list[str]) -> None:
    target = sink(tombstones=True, key="id").target.kafka.model_copy(update={"key": tuple(names)})

    with pytest.raises(ConfigurationError, match=f"key has every column, {', '.join(names)}: each row would"):
        has_value(names, target)


def test_the_columns_of_the_key_are_left_out_of_the_schema_of_the_value_where_the_spec_says_so() -> None:
    both = {"type": "struct", "fields": [COLUMN | {"name": name} for name in ("id", "kind")]}
    source = {"connection": "k", "topic": "in", "format": "json", "schema": "id long, kind long"}

    def names(part: Part, **more: bool) -> list[str]:
        avro = {"connection": "k", "topic": "out", "format": "avro", "registry": "r", "key": "id", **more}
        whole = SinkSpec.parse({"name": "s", "source": {"kafka": source}, "target": {"kafka": avro}})
        return [column.name for column in part_columns(kafka_sink(whole), part, both)]

    assert names(Part.VALUE) == names(Part.VALUE, key_in_value=True) == ["id", "kind"]
    assert names(Part.VALUE, key_in_value=False) == ["kind"]
    assert names(Part.KEY, key_in_value=False) == ["id"]
