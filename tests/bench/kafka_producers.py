"""What a row costs on its way from Arrow into Kafka: processor time of one process, by producer, in turn.

python -m tests.bench.kafka_producers

Each arm writes the same Arrow batches in transactions to a broker beside it: ours from Arrow's buffers, and
confluent-kafka's with a Python object per row. Python's part is the thread that hands rows over; the process
holds librdkafka's own threads too, which batch, compress and send. A ``read_committed`` consumer counts.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.arrow_producer import ArrowProducer
from airflow_provider_sinks.connectors.kafka.object_producer import ObjectProducer
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.row_producer import RowProducer
from airflow_provider_sinks.connectors.kafka.transactions import producer_config, warm_up
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.bench import topics

ROUNDS = 5
SEED = 7
BATCH_ROWS = 8_192
BATCHES_PER_TRANSACTION = 12
SIZES = {100: 48, 1024: 24}
"""Batches of a round, by the bytes of a value."""
ARMS: dict[str, Callable[..., RowProducer]] = {
    "an object per row": ObjectProducer,
    "Arrow's buffers": ArrowProducer,
}


@dataclass(frozen=True)
class Cost:
    """What one round took, in µs of processor time per row, and rows per second."""

    python: float
    process: float
    rows_per_second: float


def batch_of(value_bytes: int) -> tuple[pa.Array, pa.Array]:
    """Return keys and values of one batch."""
    chance = random.Random(SEED)  # noqa: S311  not a secret
    values = [chance.randbytes(value_bytes) for _ in range(BATCH_ROWS)]
    keys = [b"key-%d" % number for number in range(BATCH_ROWS)]
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary())


def write(options: KafkaOptions, make: Callable[..., RowProducer], value_bytes: int) -> Cost:
    """Write one round with a producer of its own, and return what it took."""
    keys, values = batch_of(value_bytes)
    config = producer_config(options, uuid.uuid4().hex, timedelta(seconds=60))
    topic = uuid.uuid4().hex
    topics.create(options.bootstrap_servers, topic, topics.PARTITIONS)
    producer = make(config, lambda _: None, lambda *_: None)
    warm_up(producer)
    producer.init_transactions(30)

    def wait() -> None:
        producer.poll(0.01)

    started, process, thread = time.monotonic(), time.process_time(), time.thread_time()
    for number in range(SIZES[value_bytes]):
        if number % BATCHES_PER_TRANSACTION == 0:
            producer.begin_transaction()
        producer.produce_rows(topic, keys, values, wait)
        if (number + 1) % BATCHES_PER_TRANSACTION == 0:
            producer.commit_transaction(60)
    rows = SIZES[value_bytes] * BATCH_ROWS
    cost = Cost(
        (time.thread_time() - thread) / rows * 1e6,
        (time.process_time() - process) / rows * 1e6,
        rows / (time.monotonic() - started),
    )
    found = topics.count(options.bootstrap_servers, topic)
    if found != rows:
        raise SystemExit(f"{rows:,} rows were written, and {found:,} are there")
    topics.delete(options.bootstrap_servers, topic)
    return cost


def _told(figures: list[float], form: str) -> str:
    return f"{median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


def measure(options: KafkaOptions, value_bytes: int) -> None:
    """Run the arms in turn, the order turned round with each round, and print a table."""
    costs: dict[str, list[Cost]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        for name in list(ARMS)[:: 1 if number % 2 else -1]:
            cost = write(options, ARMS[name], value_bytes)
            if number:  # the first round warms the broker up
                costs[name].append(cost)
    rows = SIZES[value_bytes] * BATCH_ROWS
    print(f"\n{rows:,} records of {value_bytes} bytes a round, with keys; medians (min to max)\n")
    print("| rows are handed over as | Python, µs per row | process, µs per row | rows/s |")
    print("|---|---|---|---|")
    for name, found in costs.items():
        python, process = [c.python for c in found], [c.process for c in found]
        rate = _told([c.rows_per_second for c in found], ",.0f")
        print(f"| {name} | {_told(python, '.2f')} | {_told(process, '.2f')} | {rate} |")


def main() -> None:
    """Measure each size."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{ROUNDS} rounds behind one that is not counted; load of the machine before it: {load}")
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaBroker.start(Path(folder) / "kafka", lasting=True) as broker,
    ):
        options = KafkaOptions.from_connection_extra(broker.client_config(), "bench")
        for value_bytes in SIZES:
            measure(options, value_bytes)


if __name__ == "__main__":
    main()
