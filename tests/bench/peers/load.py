"""The two ends of a latency: rows at an even rate with the time in them, and a reader that takes the time.

load.py produce <bootstrap> <topic> <partitions> <rows per second> <rows>
load.py consume <bootstrap> <topic> <partitions> <rows> <rows not timed> <seconds at most> <file to write>

A value is the row's number and the nanoseconds since the epoch right before ``produce``, in 8 bytes each, and
padding.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

VALUE_BYTES = 100
KEYS = 50_000
PROBE = 1 << 62
"""The number of a row that only asks whether somebody is there."""
_HEAD = struct.Struct(">QQ")
_PADDING = bytes(VALUE_BYTES - _HEAD.size)
_PAUSE_SECONDS = 0.001
_CONSUME_SECONDS = 0.005
_END_SECONDS = 30


def value(number: int) -> bytes:
    """Return the value of a row that is produced now."""
    return _HEAD.pack(number, time.time_ns()) + _PADDING


def produce(bootstrap: str, topic: str, *numbers: str) -> None:
    """Produce rows at an even rate, spread over the partitions."""
    partitions, rate, rows = map(int, numbers)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    producer.list_topics(topic, _END_SECONDS)
    began, number = time.monotonic(), 0
    while number < rows:
        due = min(rows, int((time.monotonic() - began) * rate) + 1)
        while number < due:
            producer.produce(topic, value(number), b"key-%d" % (number % KEYS), number % partitions)
            number += 1
        producer.poll(0)
        time.sleep(_PAUSE_SECONDS)
    producer.flush(_END_SECONDS)


def consume(bootstrap: str, topic: str, *given: str) -> None:
    """Time rows until all are there or the time is over, and write down what was seen."""
    partitions, rows, warm_up, seconds = map(int, given[:4])
    consumer = _consumer(bootstrap)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    deadline = time.monotonic() + seconds
    seen, found, doubled, late = bytearray(rows), 0, 0, []
    while found < rows and time.monotonic() < deadline:
        messages = consumer.consume(1_000, _CONSUME_SECONDS)
        now = time.time_ns()
        for message in messages:
            if message.error():
                continue
            number, sent = _HEAD.unpack_from(message.value() or bytes(_HEAD.size))
            if number >= rows:
                continue
            doubled += seen[number]
            found += not seen[number]
            seen[number] = 1
            if number >= warm_up:
                late.append((now - sent) / 1e6)
    consumer.close()
    document = {"late_ms": sorted(late), "missing": rows - found, "doubled": doubled}
    Path(given[4]).write_text(json.dumps(document))


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "latency",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "fetch.min.bytes": 1,
        }
    )


if __name__ == "__main__":
    {"produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
