"""A broker that is silent for a minute while rows of 10 B and 1 MB come: memory is bounded, order is kept."""

from __future__ import annotations

import resource
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.connectors.kafka.arrow_producer import ArrowProducer
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.transactions import QUEUED_BYTES_MAX, producer_config
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator

_SILENT_SECONDS = 60.0
_LARGE_BYTES = 900_000
_CYCLES = 50
_SMALL_ROWS, _LARGE_ROWS = 8_000, 12
_BESIDE_BYTES = 200 * 1024 * 1024
"""What librdkafka adds to 500,000 records, batches that are on their way, and a batch of ours."""


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _batches() -> Iterator[pa.Array]:
    """Yield batches of small rows and of large ones in turn, numbered throughout."""
    number = 0
    for _ in range(_CYCLES):
        for count, size in ((_SMALL_ROWS, 10), (_LARGE_ROWS, _LARGE_BYTES)):
            values = [b"%d " % n for n in range(number, number + count)]
            yield pa.array([value.ljust(size, b"x") for value in values], pa.binary())
            number += count


def _numbers(options: KafkaOptions, topic: str) -> Iterator[int]:
    """Read what is committed, and keep none of it."""
    settings = {
        "group.id": uuid.uuid4().hex,
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": 64_000,
    }
    consumer = Consumer({**options.librdkafka(), **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(60)
        assert message is not None, "nothing more came"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        yield int((message.value() or b"")[:12].split()[0])
    consumer.close()


def test_a_queue_that_is_full_for_a_minute_stays_bounded_and_keeps_the_order(tmp_path: Path) -> None:
    with KafkaBroker.start(tmp_path / "kafka") as broker:
        options = KafkaOptions.from_connection_extra(broker.client_config(), "k")
        administrator.create_topic(AdminClient(broker.client_config()), "data")
        config = producer_config(options, "full", timedelta(minutes=10))
        producer = ArrowProducer(config, lambda _: None, lambda *_: None)
        producer.init_transactions(60)
        producer.begin_transaction()
        before, waited, peaks, queued = _resident_bytes(), time.monotonic(), [0], [0]

        def wait() -> None:
            producer.poll(0.01)
            peaks.append(_resident_bytes() - before)
            queued.append(len(producer))

        broker.pause()
        thawing = threading.Timer(_SILENT_SECONDS, broker.resume)
        thawing.start()
        for values in _batches():
            assert producer.produce_rows("data", pa.nulls(len(values), pa.binary()), values, wait) is None
        waited = time.monotonic() - waited
        thawing.join()
        producer.commit_transaction(300)

        found = list(_numbers(options, "data"))

    assert waited > _SILENT_SECONDS
    assert len(peaks) > 100, "the queue was never full"
    assert max(queued) <= 500_000
    assert max(peaks) < QUEUED_BYTES_MAX + _BESIDE_BYTES
    assert found == list(range(_CYCLES * (_SMALL_ROWS + _LARGE_ROWS)))
