"""The connection to a schema registry, and what a spec says about schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.arguments import parse
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.kafka.short import kafka
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.build import Sink
from airflow_provider_sinks.core.spec.sink_file import read_sinks

ORDER = json.dumps({"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]})


def options(**given: Any) -> RegistryOptions:
    found = ConnectionFields("registry", "http", **given).options()
    assert isinstance(found, RegistryOptions)
    return found


@pytest.mark.parametrize(
    ("given", "summary"),
    [
        ({"host": "one", "port": 8081}, "http://one:8081"),
        ({"host": "one", "schema": "https"}, "https://one"),
        ({"host": "http://one:1,https://two:2/api/"}, "http://one:1, https://two:2/api"),
        ({"extra": {"urls": ["http://a", "http://b"]}}, "http://a, http://b"),
        ({"host": "one", "login": "u", "password": "geheim"}, 'http://one as "u"'),
        ({"host": "one", "password": "geheim"}, "http://one with a token"),
    ],
)
def test_an_http_connection_leads_to_registries(given: dict[str, Any], summary: str) -> None:
    found = options(**given)

    assert found.summary == summary
    assert "geheim" not in repr(found)
    assert "geheim" not in repr(ResolvedConnections({"registry": found}))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "host: is missing"),
        ({"host": "ftp://one"}, "host: is no address of a registry"),
        ({"host": "http://user:geheim@one"}, "host: is no address of a registry"),
        ({"host": "one", "login": "u"}, "password: is missing"),
        ({"host": "one", "extra": {"token": "geheim"}}, "extra.token: is refused"),
        ({"host": "one", "extra": {"ssl.ca.locations": "/x"}}, 'did you mean "ssl.ca.location"?'),
    ],
)
def test_a_connection_that_leads_nowhere_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        options(**given)
    assert problem in str(error.value)
    assert "geheim" not in str(error.value)


def test_a_driver_gets_what_was_read() -> None:
    given = ResolvedConnections({"registry": options(host="one", login="u", password="geheim")})

    assert ResolvedConnections.from_json(given.to_json()) == given


def avro_sink(**target: Any) -> Any:
    source = kafka("k", "orders", format="avro", registry="r", schema=ORDER)
    return Sink(name="orders", source=source, target=kafka("k", "out", **target))


def test_a_target_takes_format_and_registry_of_its_source() -> None:
    sink = avro_sink()

    assert (sink.target.kafka.format.value, sink.target.kafka.registry) == ("avro", "r")
    assert sink.connections == ("k", "r")
    assert sink.source_columns == ("id",)


def test_what_is_declared_by_a_file_is_written_down_at_once(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    sink = avro_sink(format="avro", registry="r", schema={"file": str(path)})

    path.unlink()

    again = type(sink).parse(json.loads(sink.to_json()))
    assert again.target.kafka.schema_.inline == ORDER
    assert again.digest == sink.digest


PLACES = [
    {"source": {"schema": "FILE"}},
    {"source": {"schema": ORDER, "key_as": {"format": "avro", "schema": "FILE"}}},
    {"target": {"schema": "FILE"}},
    {"target": {"key_format": "avro", "key": ["id"], "key_schema": "FILE"}},
]


@pytest.mark.parametrize("place", PLACES, ids=["source", "source key", "target", "target key"])
@pytest.mark.parametrize("file", ["/proc/self/environ", "/there/is/none"])
def test_a_sink_that_a_task_is_given_has_no_file_read_or_found_out(
    place: dict[str, dict[str, Any]], file: str
) -> None:
    named = {"file": file, "references": [{"name": "n", "subject": "s", "version": 1}]}
    ends: dict[str, dict[str, Any]] = json.loads(json.dumps(place).replace('"FILE"', json.dumps(named)))
    avro = {"connection": "k", "format": "avro", "registry": "r"}
    source = {**avro, "topic": "in", **ends.get("source", {})}
    target = {**avro, "topic": "out", **ends.get("target", {})}

    with pytest.raises(ConfigurationError) as refused:
        parse({"name": "o", "source": {"kafka": source}, "target": {"kafka": target}})

    (problem,) = refused.value.problems
    assert (problem.what, problem.where.endswith("schema")) == (
        "names a file, which is read only where a sink is declared",
        True,
    )


def test_a_file_that_yaml_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    source = f"{{connection: k, topic: in, format: avro, registry: r, schema: {{file: {path}}}}}"

    found = read_sinks(f"sinks: [{{name: o, source: {{kafka: {source}}}, target: k/out}}]".encode())

    declared = found.sinks[0].spec.source.kafka.declared
    assert declared is not None
    assert declared.inline == ORDER


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ({"format": "avro"}, "target.kafka.registry: is missing: format avro needs one"),
        ({"format": "json", "registry": "r"}, "target.kafka.registry: does not go with format json"),
        ({"format": "avro", "registry": "r", "key_format": "avro"}, "is for a key made of columns"),
        ({"format": "avro", "registry": "r", "schema": "{"}, "target.kafka.schema: is not JSON"),
        (
            {"format": "avro", "registry": "r", "schema": {"subject": "s", "inline": "{}"}},
            "names no schema, or two",
        ),
        ({"format": "avro", "registry": "r", "schema": {"file": "o.avsc"}}, "is no absolute path"),
        ({"format": "avro", "registry": "r", "schema": {"subjct": "s"}}, 'did you mean "subject"?'),
        ({"format": "avro", "registry": "r", "auto_register": "chek"}, 'did you mean "check"?'),
        ({"format": "avro", "registry": "r", "subjects": "topic"}, "names no subjects"),
        ({"format": "avro", "registry": "r", "record": "a b"}, "is no name in Avro"),
        ({"format": "json", "schema": ORDER}, "target.kafka.schema: is for a value in avro"),
    ],
)
def test_what_is_wrong_about_a_schema_is_said_with_its_place(target: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        avro_sink(**target)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"format": "avro"}, "source.kafka.registry: is missing"),
        ({"format": "avro", "registry": "r", "schema": '{"type": "int"}'}, "only a record has columns"),
        ({"format": "avro", "registry": "r", "subjects": "record_name"}, "no record is known"),
        ({"format": "text", "key_as": {"format": "json"}}, "json is not read in keys"),
        (
            {"format": "avro", "registry": "r", "schema": ORDER, "key_as": {"column": "ID"}},
            "'ID' is a column of the value already",
        ),
    ],
)
def test_what_is_wrong_about_a_source_is_said_with_its_place(source: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Sink(name="s", source=kafka("k", "a", **source), target=kafka("k", "b", format="json"))
    assert problem in str(error.value)
