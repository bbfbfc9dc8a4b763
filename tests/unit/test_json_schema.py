"""The JSON Schema for editors: valid, up to date, and of one mind with the parser."""

from __future__ import annotations

import enum
import json
from abc import ABC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.postgres.spec import PostgresSink
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec import json_schema
from airflow_provider_sinks.core.spec.json_schema import document_schema, schema_text
from airflow_provider_sinks.core.spec.parts import Target, TargetOptions
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.sink_file import load_entries

FILE = Path(__file__).parents[2] / "docs" / "sink.schema.json"
SOURCE = {"kafka": {"connection": "k", "topic": "a", "schema": "a int"}}
TARGET = {"kafka": {"connection": "k", "topic": "b"}}


def check(sink: Any) -> None:
    jsonschema.Draft202012Validator(document_schema()).validate({"sinks": [sink]})


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), (
        "python -m airflow_provider_sinks.core.spec.json_schema docs/sink.schema.json"
    )


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema())


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"source": "k/a", "target": "k/b"},
        {"trigger": "available_now"},
        {"trigger": {"every": "500ms"}, "transaction_timeout": "60s"},
        {"dead_letter": "d", "progress": "p"},
        {
            "dead_letter": {
                "topic": "d",
                "partitions": 3,
                "config": {"retention.ms": 1000, "preallocate": True},
            }
        },
        {"select": ["a"], "where": "a > 1"},
        {
            "query": "SELECT s.a, u.b FROM source s JOIN users u USING (a)",
            "lookups": {
                "users": {
                    "postgres": {"connection": "p", "table": "a.b", "columns": ["a", "b"], "refresh": "1m"}
                }
            },
        },
        {
            "query": "SELECT s.a, u.b FROM source s JOIN users u USING (a)",
            "lookups": {"users": "pg/a.b"},
        },
        {
            "source": {
                "kafka": {**SOURCE["kafka"], "start": {"0": 1}, "options": {"fetchOffset.numRetries": 3}}
            }
        },
        {"target": {"kafka": {**TARGET["kafka"], "key": "a", "partitions": 3, "compression": "zstd"}}},
        {"writers": "single", "output_mode": "update", "checkpoint": "s3a://b/c"},
    ],
)
def test_what_the_parser_takes_the_schema_takes(more: dict[str, Any]) -> None:
    sink = {"name": "x", "source": SOURCE, "target": TARGET, **more}

    SinkSpec.parse(sink)
    check(sink)


@pytest.mark.parametrize(
    "more",
    [
        {"name": "a.b"},
        {"nmae": "x"},
        {"source": "topic"},
        {"source": {"kafka": {**SOURCE["kafka"], "topic": "a b"}}},
        {"trigger": {"every": 5}},
        {"trigger": "now"},
        {"target": {"kafka": {**TARGET["kafka"], "partitions": "3"}}},
        {"lookups": {"my-users": "pg/a.b"}},
        {"writers": "many"},
    ],
)
def test_what_the_parser_refuses_by_form_the_schema_refuses(more: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check({"name": "x", "source": SOURCE, "target": TARGET, **more})
    with pytest.raises(ConfigurationError):
        SinkSpec.parse({"name": "x", "source": SOURCE, "target": TARGET, **more})


@pytest.mark.parametrize(
    ("dag", "fits"),
    [
        ({"schedule": "@hourly", "owner": "a", "owner_link": "https://a.b", "tags": ["x"]}, True),
        ({"schedule": None, "check_topics": False, "description": "d"}, True),
        ({"shedule": "@hourly"}, False),
        ({"owner_link": "a.b"}, False),
        ({"tags": "x"}, False),
        ("@hourly", False),
    ],
)
def test_the_schema_and_the_parser_agree_on_what_a_file_says_about_a_dag(dag: Any, fits: bool) -> None:
    sink = {"name": "x", "source": "k/a", "target": "k/b", "dag": dag}
    text = json.dumps({"sinks": [sink]})  # JSON is YAML

    assert jsonschema.Draft202012Validator(document_schema()).is_valid({"sinks": [sink]}) is fits
    if fits:
        assert load_entries(text)[0].spec == SinkSpec.parse({"name": "x", "source": "k/a", "target": "k/b"})
    else:
        with pytest.raises(ConfigurationError, match=r"sinks\[x\]\.dag"):
            load_entries(text)


def test_what_the_job_writes_the_schema_takes() -> None:

    check(json.loads(SinkSpec.parse({"name": "x", "source": SOURCE, "target": TARGET}).to_json()))


class Mode(enum.StrEnum):
    """As the one of Postgres is called too."""

    FAST = "fast"


class OtherTarget(TargetOptions):
    mode: Mode


class OtherChoice(Target):
    other: OtherTarget


class OtherSink(SinkSpec, ABC):
    target: OtherChoice


def test_classes_of_one_name_in_two_packages_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = {"kafka": KafkaSink, "other": OtherSink, "postgres": PostgresSink}
    monkeypatch.setattr(json_schema, "points", lambda: sinks)
    monkeypatch.setattr(json_schema, "load", lambda name: SimpleNamespace(sink=sinks[name]))

    for target, is_right in [
        ({"other": {"mode": "fast"}}, True),
        ({"other": {"mode": "append"}}, False),
        ({"postgres": {"connection": "pg", "table": "public.t", "mode": "append"}}, True),
        ({"postgres": {"connection": "pg", "table": "public.t", "mode": "fast"}}, False),
    ]:
        sink = {"name": "orders", "source": SOURCE, "target": target}
        judge = jsonschema.Draft202012Validator(document_schema())
        assert judge.is_valid({"sinks": [sink]}) is is_right
