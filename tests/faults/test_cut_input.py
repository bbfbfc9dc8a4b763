"""A killed JVM looks like the end of the input to its Python worker; the sink's daemon tells the two apart.

The input comes through a pipe whose writer is killed between two batches, and rows go to the real broker. One
test reads the same input as Spark does, and shows the part of an epoch that would be committed. Rows that the
driver writes itself come to it as one stream for all tasks, which is cut too.
"""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from subprocess import PIPE, Popen
from typing import IO, Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.serializers import ArrowCollectSerializer, ArrowStreamSerializer

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.run import KafkaRun, KafkaTopics
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming import held_writers
from airflow_provider_sinks.streaming.arriving_rows import by_task
from airflow_provider_sinks.streaming.daemon import CutInputError, load_proved_stream
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.writer import run_task
from tests.faults import topics
from tests.support import TopicFactory

BATCHES = 4
ROWS_PER_BATCH = 5
CONTINUATION = b"\xff\xff\xff\xff"
SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        KEY: pa.binary(),
        VALUE: pa.binary(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)
WRITER_OF_A_PIPE = (
    "import sys, time; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stdout.flush(); time.sleep(60)"
)
Loader = Callable[[Any, IO[bytes]], Iterable[pa.RecordBatch]]


def whole_input() -> bytes:
    """Return the input of an epoch, as the JVM writes it."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for number in range(BATCHES):
            writer.write_batch(batch(range(number * ROWS_PER_BATCH, (number + 1) * ROWS_PER_BATCH)))
    return sink.getvalue()


def batch(offsets: range) -> pa.RecordBatch:
    found = [{rows.PARTITION: 0, rows.OFFSET: at, VALUE: b"%d" % at} for at in offsets]
    return pa.RecordBatch.from_pylist(found, schema=SCHEMA)


def boundaries(stream: bytes) -> list[int]:
    """Return where each message begins, and last where the mark of the end begins."""
    found = []
    reader = pa.BufferReader(stream)
    while reader.tell() < len(stream) - 8:
        found.append(reader.tell())
        pa.ipc.read_message(reader)
    return [*found, reader.tell()]


@contextmanager
def killed_writer(data: bytes) -> Iterator[IO[bytes]]:
    """Return the reading end of a pipe whose writer is killed as soon as it has written ``data``."""
    with Popen([sys.executable, "-c", WRITER_OF_A_PIPE], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(data)
        process.stdin.close()
        process.stdout.peek(1)  # type: ignore[attr-defined]
        os.kill(process.pid, signal.SIGKILL)
        yield process.stdout


def read(loader: Loader, stream: IO[bytes]) -> int:
    """Return how many rows a worker is given."""
    return sum(part.num_rows for part in loader(None, stream))


def sparks_own(_self: Any, stream: IO[bytes]) -> Iterable[pa.RecordBatch]:
    """Read an input as Spark's own workers do."""
    batches: Iterable[pa.RecordBatch] = ArrowStreamSerializer().load_stream(stream)  # type: ignore[no-untyped-call]
    return batches


def test_a_whole_input_is_read_whole() -> None:
    with killed_writer(whole_input()) as stream:
        assert read(load_proved_stream, stream) == BATCHES * ROWS_PER_BATCH


@pytest.mark.parametrize("message", range(1, BATCHES + 2))
def test_an_input_cut_between_two_messages_is_told(message: int) -> None:
    stream = whole_input()[: boundaries(whole_input())[message]]

    with killed_writer(stream) as pipe, pytest.raises(CutInputError):
        read(load_proved_stream, pipe)


def test_an_input_cut_anywhere_is_told() -> None:
    whole = whole_input()

    for end in range(len(whole)):
        with pytest.raises((CutInputError, OSError, pa.ArrowInvalid)):
            read(load_proved_stream, io.BytesIO(whole[:end]))


@pytest.mark.parametrize("message", range(1, BATCHES + 2))
def test_spark_takes_a_cut_input_for_a_whole_one(message: int) -> None:
    stream = whole_input()[: boundaries(whole_input())[message]]

    with killed_writer(stream) as pipe:
        assert read(sparks_own, pipe) == (message - 1) * ROWS_PER_BATCH


@pytest.fixture
def plan(topic: TopicFactory, kafka_options: KafkaOptions) -> Iterator[EpochPlan]:
    """An epoch of all rows, into topics of its own on the real broker."""
    data, progress = topic("data"), topic("progress")
    identity = Identity("cluster", data, "id", 1)
    record = ProgressRecord(
        1, "faults", "run", 1, {0: 0}, {0: BATCHES * ROWS_PER_BATCH}, Identities(identity, identity, identity)
    )
    run = KafkaRun(
        sink=data,
        run="run",
        generation=1,
        prefix="sinks",
        topics=KafkaTopics(data, progress, None, data),
        transaction_timeout=timedelta(minutes=1),
        options=kafka_options,
    )
    factory = KafkaWriterFactory(run, "lz4")
    yield EpochPlan(
        data,
        record,
        None,
        data,
        {0: 0},
        {},
        {},
        ("p0",),
        False,
        "",
        10**6,
        30.0,
        10**9,
        None,
        lambda _: None,
        factory,
    )
    held_writers.forget_all()


def cut_input() -> bytes:
    return whole_input()[: boundaries(whole_input())[3]]


def test_a_cut_input_commits_nothing(plan: EpochPlan, kafka_options: KafkaOptions) -> None:
    with killed_writer(cut_input()) as pipe, pytest.raises(CutInputError):
        run_task(plan, load_proved_stream(None, pipe))

    assert topics.read(kafka_options.librdkafka(), plan.source_topic) == []


def test_without_the_proof_a_part_of_an_epoch_is_committed(
    plan: EpochPlan, kafka_options: KafkaOptions
) -> None:
    with killed_writer(cut_input()) as pipe:
        run_task(plan, sparks_own(None, pipe))

    assert (
        len(topics.read(kafka_options.librdkafka(), plan.source_topic))
        == 2 * ROWS_PER_BATCH
        < BATCHES * ROWS_PER_BATCH
    )


def result_of_two_tasks() -> bytes:
    """Return what Spark hands the driver: batches with the numbers of their tasks, then their order."""
    sink = io.BytesIO()
    schema = SCHEMA.append(pa.field("__sinks_task", pa.int32()))
    with pa.ipc.new_stream(sink, schema) as writer:
        for number in range(BATCHES):
            task = pa.array([number // 2] * ROWS_PER_BATCH, pa.int32())
            writer.write_batch(batch(range(ROWS_PER_BATCH)).append_column(schema.names[-1], task))
    return sink.getvalue() + struct.pack(f">{BATCHES + 1}i", BATCHES, *range(BATCHES))


def came(data: bytes, tasks: list[int]) -> None:
    """Read what comes to the driver before its stream ends; remember of which tasks."""
    items = ArrowCollectSerializer().load_stream(io.BytesIO(data))  # type: ignore[no-untyped-call]
    tasks.extend(task for task, _ in by_task(items))


def test_a_whole_result_comes_to_the_driver_task_by_task() -> None:
    tasks: list[int] = []

    came(result_of_two_tasks(), tasks)

    assert tasks == [0, 0, 1, 1]


@pytest.mark.parametrize("message", range(1, BATCHES + 2))
def test_a_result_cut_between_two_messages_does_not_look_whole_to_the_driver(message: int) -> None:
    tasks: list[int] = []
    data = result_of_two_tasks()
    end = boundaries(data[: -4 * (BATCHES + 1)])[message]

    with pytest.raises(EOFError):
        came(data[:end], tasks)

    assert tasks == [0, 0, 1, 1][: message - 1]


def test_a_result_cut_anywhere_does_not_look_whole_to_the_driver() -> None:
    whole = result_of_two_tasks()

    for end in range(len(whole)):
        with pytest.raises((EOFError, OSError, pa.ArrowInvalid, struct.error)):
            came(whole[:end], [])
