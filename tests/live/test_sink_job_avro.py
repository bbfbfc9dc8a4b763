"""Sinks that read and write Avro by a schema registry, on the real broker, Spark and registry."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import pytest
from confluent_kafka.serialization import MessageField

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.registered import Registered, record
from tests.live.stage import WHO_WRITES

ORDER = record("Order", id="long", what="string")
AVRO = {"format": "avro", "registry": "registry"}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_avro_goes_in_and_out(registered: Registered) -> None:
    rows = [{"id": 1, "what": "tea"}, {"id": 2, "what": "süß"}]
    source = registered.source("both", ORDER, rows)
    sink = registered.stage.sink("both", source, from_=AVRO, to={**AVRO, "key": ["id"], "key_format": "avro"})

    status = sink.run()

    assert (status.rows, status.dead_total) == (2, 0)
    assert registered.values(sink) == rows
    assert registered.values(sink, MessageField.KEY) == [{"id": 1}, {"id": 2}]


def test_every_type_comes_back_as_it_was(registered: Registered) -> None:
    at = datetime.datetime(2024, 2, 29, 23, 59, 59, 123000, tzinfo=datetime.UTC)
    tree = record(
        "Everything",
        id={"type": "string", "logicalType": "uuid"},
        amount={"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        day={"type": "int", "logicalType": "date"},
        millis={"type": "long", "logicalType": "timestamp-millis"},
        micros={"type": "long", "logicalType": "timestamp-micros"},
        color={"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]},
        digest={"type": "fixed", "name": "Digest", "size": 4},
        tags={"type": "array", "items": "string"},
        counts={"type": "map", "values": "long"},
        inner=record("Inner", ratio="double", small="float", flag="boolean", size="int"),
        note=["null", "string"],
        raw="bytes",
    )
    row = {
        "id": uuid.UUID(int=7),
        "amount": Decimal("1234567890123456.7891"),
        "day": datetime.date(1969, 7, 20),
        "millis": at,
        "micros": at.replace(microsecond=123456),
        "color": "BLUE",
        "digest": b"\x00\xff\x01\x02",
        "tags": ["a", ""],
        "counts": {"x": 2**62},
        "inner": {"ratio": 0.1, "small": 0.5, "flag": True, "size": -1},
        "note": None,
        "raw": b"\x00",
    }
    source = registered.source("types", tree, [row])
    subject = {"subject": f"{source}-value", "version": 1}
    sink = registered.stage.sink("types", source, from_=AVRO, to={**AVRO, "schema": subject})

    sink.run()

    assert registered.values(sink) == [row]
