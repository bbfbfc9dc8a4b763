"""How long a start looks for its sink's progress in a topic that many sinks share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from confluent_kafka import Producer

from airflow_provider_sinks.connectors.kafka.creation import PROGRESS_CONFIG
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressLog
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, ProgressRecord, partition_writer
from airflow_provider_sinks.local.processes import LocalServiceError
from tests.bench import topics
from tests.bench.peers.place import Place

_PARTITIONS = 4
_EPOCHS = 25
"""Of each sink, behind its announcement; none of it is compacted away yet."""
_READ_SECONDS = 120.0
_FLUSH_SECONDS = 60


def look_ups(place: Place, sinks: int) -> list[float]:
    """Fill a topic as so many sinks do that run side by side, and return how long some look-ups take.

    :raises LocalServiceError: one did not find what was written.
    """
    name = place.next_name("shared progress")
    topics.create(place.bootstrap, name, 1, PROGRESS_CONFIG)
    try:
        _fill(place.bootstrap, name, sinks)
        return [_look_up(place.bootstrap, name, number) for number in (0, sinks // 2, sinks - 1)]
    finally:
        topics.delete(place.bootstrap, name)


def _look_up(bootstrap: str, topic: str, sink: int) -> float:
    """Return the seconds of one look-up by a reader that has seen nothing yet, its connection included."""
    options = KafkaOptions.from_connection_extra({"bootstrap.servers": bootstrap}, "bench")
    began = time.monotonic()
    log = ProgressLog(options, topic)
    history = log.read(_name(sink), _READ_SECONDS)
    seconds = time.monotonic() - began
    log.close()
    if len(history.records) != _PARTITIONS + 1 or history.epoch != _EPOCHS:
        raise LocalServiceError(f"the progress of {_name(sink)} was not found whole", str(history.epoch))
    return seconds


def _fill(bootstrap: str, topic: str, sinks: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for key, value in _records(sinks):
        producer.produce(topic, value, key, 0)
        while len(producer) > 50_000:
            producer.poll(0.1)
    if left := producer.flush(_FLUSH_SECONDS):
        raise LocalServiceError(f"{left:,} records did not arrive", topic)


def _records(sinks: int) -> Iterator[tuple[bytes, bytes]]:
    """Give keys and values: announcements of all sinks, then their epochs side by side."""
    writers = [partition_writer(partition) for partition in range(_PARTITIONS)]
    announced = replace(_record(0), writers=(DRIVER, *writers), writer_mode="per_partition").encode()
    for sink in range(sinks):
        yield ProgressKey(_name(sink), DRIVER).encode(), announced
    for epoch in range(1, _EPOCHS + 1):
        value = replace(_record(epoch), rows=100, rows_total=100 * epoch).encode()
        for sink in range(sinks):
            for writer in writers:
                yield ProgressKey(_name(sink), writer).encode(), value


def _record(epoch: int) -> ProgressRecord:
    at = dict.fromkeys(range(_PARTITIONS), 100 * epoch)
    source, data, progress = (
        Identity("cluster", name, f"id-of-{name}", _PARTITIONS) for name in ("events", "copy", "progress")
    )
    identities = Identities(source, data, progress)
    return ProgressRecord(
        generation=1, owner="bench", run="run", epoch=epoch, from_=at, to=at, identities=identities
    )


def _name(sink: int) -> str:
    return f"sink-{sink:04}"
