"""Sinks that read and write Avro, JSON Schema and Protobuf by a registry, beside plain JSON in and out.

python -m tests.bench.formats [--rows 3000000] [--rounds 3] [--sizes 100 1024] [--arms avro]

The same rows in each format, from a topic into a topic. The first two million rows are left out: until then a
JVM compiles what it runs.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.core.schemas.protobuf import descriptor, parse
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import unwind_on_signals
from airflow_provider_sinks.local.schema_registry import SchemaRegistry
from tests.bench import topics
from tests.bench.arms import prepare, submit
from tests.bench.rounds import Rounds, Stream, Work, machine, make_source, print_drain
from tests.bench.topics import PARTITIONS, Topics

EPOCH_ROWS = 250_000
COLD_ROWS = 2_000_000
_DISTINCT = 10_000
_SEED = 20261128
_LETTERS = "abcdefghijklmnopqrstuvwxyz "
_JSON_BYTES = 92
"""Of a row as JSON, without its page."""
_COLUMNS = {"id": "bigint", "viewtime": "bigint", "userid": "string", "pageid": "string", "price": "double"}
_AVRO = json.dumps(
    {
        "type": "record", "name": "View", "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"}, {"name": "viewtime", "type": "long"},
            {"name": "userid", "type": "string"}, {"name": "pageid", "type": "string"},
            {"name": "price", "type": "double"},
        ],
    }
)  # fmt: skip
_JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "View", "type": "object",
        "properties": {
            "id": {"type": "integer"}, "viewtime": {"type": "integer"}, "userid": {"type": "string"},
            "pageid": {"type": "string"}, "price": {"type": "number"},
        },
        "required": list(_COLUMNS),
    }
)  # fmt: skip
_PROTOBUF = """syntax = "proto3"; package shop;
message View { int64 id = 1; int64 viewtime = 2; string userid = 3; string pageid = 4; double price = 5; }"""

Row = dict[str, Any]
Encode = Callable[[Row], bytes | None]


@dataclass(frozen=True)
class FormatArm:
    """A sink of ours that reads a format and writes it.

    :param registry: where its schemas are.
    """

    name: str
    registry: SchemaRegistry

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        what = {"format": self.name}
        registered = {} if self.name == "json" else {"registry": "registry"}
        columns = {"schema": ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())}
        source = {
            "connection": "kafka",
            "topic": f"{work.source}-{self.name}",
            "max_offsets_per_epoch": work.rows_per_epoch,
            **what,
            **(registered or columns),
        }
        spec = SinkSpec.parse(
            {
                "name": target,
                "source": {"kafka": source},
                "select": list(_COLUMNS),
                "target": {"kafka": {"connection": "kafka", "topic": target, **what, **registered}},
            }
        )
        connection = {"registry": RegistryOptions("registry", {"url": self.registry.url})}
        return submit(work, "ours", [prepare(work, spec, connection)])


def rows(value_bytes: int) -> list[Row]:
    """Return some rows, the same in every run.

    :param value_bytes: of a row as JSON, about.
    """
    chance = random.Random(_SEED)  # noqa: S311  not a secret
    return [
        {
            "id": chance.randrange(10**9),
            "viewtime": 1_767_225_600_000 + number,
            "userid": f"user-{chance.randrange(10**6):06d}",
            "pageid": "".join(chance.choices(_LETTERS, k=max(1, value_bytes - _JSON_BYTES))),
            "price": round(chance.uniform(0, 9999), 2),
        }
        for number in range(_DISTINCT)
    ]


def encoders(registry: SchemaRegistry, topic: str) -> dict[str, Encode]:
    """Return how confluent-kafka writes a row, by format.

    :param topic: as the names of the topics begin.
    """
    client = SchemaRegistryClient({"url": registry.url})
    naming = {"subject.name.strategy": topic_subject_name_strategy}
    message = GetMessageClass(descriptor(parse(_PROTOBUF)))
    protobuf = ProtobufSerializer(message, client, conf={"use.deprecated.format": False})
    by_name: dict[str, Callable[..., bytes | None]] = {
        "json": lambda row, _: json.dumps(row, separators=(",", ":")).encode(),
        "avro": AvroSerializer(client, _AVRO, conf=naming),
        "json_schema": JSONSerializer(_JSON_SCHEMA, client, conf=naming),
        "protobuf": lambda row, context: protobuf(message(**row), context),
    }

    def encode(name: str) -> Encode:
        context = SerializationContext(f"{topic}-{name}", MessageField("value"))
        return lambda row: by_name[name](row, context)

    return {name: encode(name) for name in by_name}


def main() -> None:
    """Run the whole benchmark."""
    given = _arguments()
    unwind_on_signals()
    services = f"Kafka {jars.KAFKA_VERSION} and a registry on the same machine"
    print(machine(services), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        KafkaBroker.start(Path(name) / "kafka", lasting=True) as broker,
        SchemaRegistry.start(Path(name) / "registry") as registry,
    ):
        arms = [FormatArm(kind, registry) for kind in ("json", *given.arms)]
        rounds = Rounds(broker.bootstrap, Path(name), given.rounds, arms, Topics(broker.bootstrap))
        for size in given.sizes:
            source = f"rows-{size}"
            encode, made = encoders(registry, source), rows(size)
            for arm in arms:
                _fill(broker, f"{source}-{arm.name}", encode[arm.name], made, given.rows)
            title = f"{given.rows:,} rows of {size} bytes as JSON, epochs of {EPOCH_ROWS:,}"
            print_drain(
                title, rounds.run(Stream(source, given.rows, EPOCH_ROWS, min(COLD_ROWS, given.rows // 2)))
            )
            for arm in arms:
                topics.delete(broker.bootstrap, f"{source}-{arm.name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-formats", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="that each run copies")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    named = ["avro", "json_schema", "protobuf"]
    parser.add_argument("--arms", nargs="*", default=named, choices=named, help="beside json")
    return parser.parse_args()


def _fill(broker: KafkaBroker, source: str, encode: Encode, made: Sequence[Row], records: int) -> None:
    values = [encode(row) or b"" for row in made]
    make_source(broker.bootstrap, source, values, records, PARTITIONS)


if __name__ == "__main__":
    main()
