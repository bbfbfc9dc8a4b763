"""Values by a registry's schemas, written and read in Java.

Avro and JSON Schema by the registry's own serializers; Protobuf by its own library, as Apicurio's serializer
puts a name of its own before a message, where Confluent's wire format has the message's place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from airflow_provider_sinks.core.schemas.protobuf import descriptor, parse
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, header
from airflow_provider_sinks.local import jars, spark
from tests.live.registered import Registered, record

_SILENT = "org.slf4j:slf4j-nop:2.0.17"
_AVRO = json.dumps(
    record("Order", id="long", what=["null", "string"], tags={"type": "array", "items": "string"})
)
_JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object",
        "properties": {
            "id": {"type": "integer"}, "what": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id"],
    }
)  # fmt: skip
_PROTOBUF = """syntax = "proto3";
package shop;
message Order { int64 id = 1; optional string what = 2; repeated string tags = 3; }
"""


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    """A JVM with what writes and reads there."""
    port, token = launch_gateway(
        jarpath=str(next((spark.spark_home() / "jars").glob("py4j-*.jar"))),
        classpath=os.pathsep.join(map(str, jars.resolve(*jars.JAVA_SERDES, _SILENT))),
        die_on_exit=True,
        enable_auth=True,
        return_proc=False,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    yield gateway
    gateway.shutdown()


class _Java:
    """What is written and read in Java by the schemas of a registry."""

    def __init__(self, gateway: JavaGateway, registered: Registered) -> None:
        self.gateway, self.jvm = gateway, gateway.jvm
        self._registered = registered
        url = registered.registry.url.replace("/ccompat/v7", "/registry/v3")
        self._settings = {
            "apicurio.registry.url": url,
            "apicurio.registry.use-id": "contentId",
            "apicurio.registry.find-latest": "true",
            "apicurio.registry.deserializer.value.return-class": "com.fasterxml.jackson.databind.JsonNode",
        }

    def _configured(self, made: Any) -> Any:
        made.configure(self.jvm.java.util.HashMap(self._settings), False)
        return made

    def write_avro(self, topic: str, text: str) -> bytes:
        avro = self.jvm.org.apache.avro
        schema = avro.Schema.Parser().parse(_AVRO)
        decoder = avro.io.DecoderFactory.get().jsonDecoder(schema, text)
        row = avro.generic.GenericDatumReader(schema).read(None, decoder)
        serde = self.jvm.io.apicurio.registry.serde.avro
        return bytes(self._configured(serde.AvroKafkaSerializer()).serialize(topic, row))

    def read_avro(self, topic: str, value: bytes) -> str:
        serde = self.jvm.io.apicurio.registry.serde.avro
        found = self._configured(serde.AvroKafkaDeserializer()).deserialize(topic, bytearray(value))
        return str(found.toString())

    def write_json_schema(self, topic: str, text: str) -> bytes:
        row = self.jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(text)
        serde = self.jvm.io.apicurio.registry.serde.jsonschema
        return bytes(self._configured(serde.JsonSchemaKafkaSerializer()).serialize(topic, row))

    def read_json_schema(self, topic: str, value: bytes) -> str:
        serde = self.jvm.io.apicurio.registry.serde.jsonschema
        found = self._configured(serde.JsonSchemaKafkaDeserializer()).deserialize(topic, bytearray(value))
        return str(found.toString())

    def _message(self, text: str) -> Any:
        """Return the type of the first message of a schema."""
        protobuf, file = self.jvm.com.google.protobuf, descriptor(parse(text)).file
        described = protobuf.DescriptorProtos.FileDescriptorProto.parseFrom(bytearray(file.serialized_pb))
        imported = self.gateway.new_array(protobuf.Descriptors.FileDescriptor, 0)
        made = protobuf.Descriptors.FileDescriptor.buildFrom(described, imported)
        return made.getMessageTypes().get(0)

    def write_protobuf(self, topic: str, text: str) -> bytes:
        protobuf = self.jvm.com.google.protobuf
        whole = protobuf.DynamicMessage.newBuilder(self._message(_PROTOBUF))
        protobuf.util.JsonFormat.parser().merge(text, whole)
        known = self._registered.client.get_latest_version(f"{topic}-value").schema_id
        assert known is not None
        return header(known) + b"\0" + bytes(whole.build().toByteArray())

    def read_protobuf(self, topic: str, value: bytes) -> str:
        text = self._registered.client.get_latest_version(f"{topic}-value").schema.schema_str
        assert value[HEADER_BYTES : HEADER_BYTES + 1] == b"\0"
        protobuf, body = self.jvm.com.google.protobuf, bytearray(value[HEADER_BYTES + 1 :])
        found = protobuf.DynamicMessage.parseFrom(self._message(text or ""), body)
        return str(protobuf.util.JsonFormat.printer().print(found))


_FORMATS: dict[str, tuple[str, str, Callable[..., bytes], Callable[..., str]]] = {
    "avro": ("AVRO", _AVRO, _Java.write_avro, _Java.read_avro),
    "json_schema": ("JSON", _JSON, _Java.write_json_schema, _Java.read_json_schema),
    "protobuf": ("PROTOBUF", _PROTOBUF, _Java.write_protobuf, _Java.read_protobuf),
}
_ROWS: list[dict[str, Any]] = [
    {"id": 2**53 - 1, "what": "süß", "tags": ["a", ""]},
    {"id": -1, "what": "", "tags": []},
    {"id": 1, "what": None, "tags": ["null"]},
]


def _for_avro(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as Avro's JSON has it: a union names what it holds."""
    return {**row, "what": None if row["what"] is None else {"string": row["what"]}}


def _for_protobuf(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


_SPELLED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "avro": _for_avro,
    "json_schema": dict,
    "protobuf": _for_protobuf,
}


def _told(row: dict[str, Any]) -> tuple[int, str | None, list[str]]:
    """Return what a row says; Protobuf's JSON has long numbers as text, and leaves out what is empty."""
    return int(row.get("id", 0)), row.get("what"), row.get("tags") or []


@pytest.mark.parametrize("format_", _FORMATS)
def test_what_java_wrote_is_read_and_what_a_sink_wrote_is_read_by_java(
    registered: Registered, java: Any, format_: str
) -> None:
    kind, schema, write, read = _FORMATS[format_]
    stage, there = registered.stage, _Java(java, registered)
    source = stage.topic(f"java-{format_}-source")
    registered.register_text(f"{source}-value", schema, kind)
    values = [write(there, source, json.dumps(_SPELLED[format_](row))) for row in _ROWS]
    stage.produce(source, ((0, None, value) for value in values))
    by = {"format": format_, "registry": "registry"}
    sink = stage.sink(f"java-{format_}", source, from_=by, to={**by, "record": "shop.Order"})

    status = sink.run()

    found = [read(there, sink.out, one.value or b"") for one in stage.read(sink.out)]
    assert [_told(json.loads(text)) for text in found] == [_told(row) for row in _ROWS]
    assert (status.rows, status.dead_total) == (len(_ROWS), 0)
