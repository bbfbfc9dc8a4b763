"""What a test of sinks with a schema registry needs: written and read by confluent-kafka."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message import Message

from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.local.schema_registry import SchemaRegistry
from tests.live.stage import Sink, Stage

KEY, VALUE = MessageField("key"), MessageField("value")
AvroTree = Mapping[str, Any]


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return the schema of a record; a field that may be null, written first, is null by default."""
    made = [{"name": key, "type": kind, **_default(kind)} for key, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "shop", "fields": made}


def _default(kind: Any) -> dict[str, None]:
    return {"default": None} if isinstance(kind, list) and kind[0] == "null" else {}


@dataclass
class Registered:
    """A stage, and a registry that its sinks know as connection ``registry``."""

    stage: Stage
    registry: SchemaRegistry

    def __post_init__(self) -> None:
        self.stage.registry = RegistryOptions("registry", {"url": self.registry.url})
        self.client = SchemaRegistryClient({"url": self.registry.url})

    def register(self, subject: str, tree: AvroTree, kind: str = "AVRO") -> int:
        """Register a schema and return its id."""
        return self.register_text(subject, json.dumps(tree), kind)

    def register_text(self, subject: str, text: str, kind: str) -> int:
        """Register a schema that is no JSON and return its id."""
        return int(self.client.register_schema(subject, Schema(text, kind)))

    def newest(self, subject: str) -> dict[str, Any]:
        """Return the newest schema of a subject."""
        text = self.client.get_latest_version(subject).schema.schema_str
        found: dict[str, Any] = json.loads(text or "")
        return found

    def encode_json(self, topic: str, tree: AvroTree, value: Any, field: MessageField = VALUE) -> bytes:
        """Return a value as confluent-kafka's serializer of JSON Schema writes it; registers its schema."""
        naming = {"subject.name.strategy": topic_subject_name_strategy}
        write = JSONSerializer(json.dumps(tree), self.client, conf=naming)
        made = write(value, SerializationContext(topic, field))
        assert made is not None
        return bytes(made)

    def json_values(self, sink: Sink, field: MessageField = VALUE) -> list[Any]:
        """Return the values, or keys, of a sink's data topic, judged and read by confluent-kafka."""
        read = JSONDeserializer(None, schema_registry_client=self.client)
        context = SerializationContext(sink.out, field)
        found = self.stage.read(sink.out)
        return [read(one.key if field is KEY else one.value, context) for one in found]

    def encode_protobuf(self, topic: str, message: Message, field: MessageField = VALUE) -> bytes:
        """Return a message as confluent-kafka's serializer writes it; registers the schema of its file."""
        write = ProtobufSerializer(type(message), self.client, conf={"use.deprecated.format": False})
        made = write(message, SerializationContext(topic, field))
        assert made is not None
        return bytes(made)

    def protobuf_values(self, sink: Sink, kind: type[Message], field: MessageField = VALUE) -> list[Any]:
        """Return the values, or keys, of a sink's data topic, read by confluent-kafka's deserializer.

        By the reader's own message: of the writer's it takes only descriptors, and Apicurio gives the text.
        """
        read = ProtobufDeserializer(kind, {"use.deprecated.format": False})
        context = SerializationContext(sink.out, field)
        found = (one.key if field is KEY else one.value for one in self.stage.read(sink.out))
        return [None if data is None else read(data, context) for data in found]

    def level(self, subject: str, level: str) -> None:
        """Set what the next schema of a subject must be."""
        self.client.set_compatibility(subject, level)

    def versions(self, subject: str) -> int:
        """Return how many versions a subject has."""
        return len(self.client.get_versions(subject)) if subject in self.client.get_subjects() else 0

    def encode(self, topic: str, tree: AvroTree, value: Any, field: MessageField = VALUE) -> bytes:
        """Return a value as confluent-kafka's serializer writes it; registers its schema."""
        naming = {"subject.name.strategy": topic_subject_name_strategy}
        write = AvroSerializer(self.client, json.dumps(tree), conf=naming)
        made = write(value, SerializationContext(topic, field))
        assert made is not None
        return bytes(made)

    def source(self, suffix: str, tree: AvroTree, values: Iterable[Any]) -> str:
        """Make a topic with these values, written by confluent-kafka."""
        topic = self.stage.topic(f"{suffix}-source")
        self.stage.produce(topic, ((0, None, self.encode(topic, tree, value)) for value in values))
        return topic

    def values(self, sink: Sink, field: MessageField = VALUE) -> list[Any]:
        """Return the values, or keys, of a sink's data topic, read by confluent-kafka's deserializer."""
        read = AvroDeserializer(self.client)
        context = SerializationContext(sink.out, field)
        found = self.stage.read(sink.out)
        return [
            None if data is None else read(data, context)
            for data in (one.key if field is KEY else one.value for one in found)
        ]
