"""One epoch with far more bytes than the driver has memory: Spark's default of 1 GB, records of 0.9 MB."""

from __future__ import annotations

import base64
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import session_members
from airflow_provider_sinks.streaming.epoch_size import SETTING
from tests.faults.driver import Driver
from tests.live.shared_driver import SharedDriver
from tests.live.stage import Stage

_BYTES = 900_000
_PARTITIONS = 2
_MIB = 1024 * 1024
_MEMORY = "1g"
_EPOCH_SECONDS = 1500.0


@pytest.fixture
def stage(postgres: Postgres, shared_driver: SharedDriver, tmp_path: Path) -> Iterator[Stage]:
    """A place on a broker of its own, whose gigabytes are removed at the end."""
    folder = tmp_path / "kafka"
    with KafkaBroker.start(folder) as broker:
        stage = Stage(broker, postgres, shared_driver, tmp_path)
        yield stage
        stage.close()
    shutil.rmtree(folder)


@dataclass(frozen=True)
class _Rows:
    """What a sink reads and writes.

    :param spelled: returns the value of a record by its number, from noise.
    :param number_of: returns the number that a written value has.
    """

    records: int
    spelled: Callable[[int, str], str]
    number_of: Callable[[bytes], int]
    spec: Mapping[str, object]


_ALL_BYTES = 8 * 1024**3
"""More than any epoch here has, so that none of them is parted."""
_ALL_IN_ONE_EPOCH = {"max_offsets_per_epoch": 1_000_000}
_TEXT = _Rows(
    1_300,
    lambda number, noise: f"{number} {noise}",
    lambda value: int(value[:8].split()[0]),
    {"from_": {"format": "text", **_ALL_IN_ONE_EPOCH}, "transaction_timeout": "10m"},
)
_JSON = _Rows(
    4_000,
    lambda number, noise: json.dumps({"number": number, "text": noise}),
    lambda value: int(json.loads(value)["number"]),
    {
        "from_": {"schema": "number long NOT NULL, text string", **_ALL_IN_ONE_EPOCH},
        "select": ["number", "text"],
        "where": "number >= 0",
        "transaction_timeout": "10m",
    },
)


def _fill(stage: Stage, rows: _Rows) -> str:
    """Make a topic with records that hardly shrink when they are compressed."""
    source = stage.topic("large-source", _PARTITIONS)
    noise = base64.b64encode(os.urandom(_BYTES)).decode()
    spelled = (rows.spelled(number, noise[number : number + _BYTES]) for number in range(rows.records))
    records = ((number % _PARTITIONS, None, value) for number, value in enumerate(spelled))
    stage.produce(source, records, **{"queue.buffering.max.kbytes": 100_000})
    return source


def _numbers(stage: Stage, topic: str, number_of: Callable[[bytes], int]) -> Iterator[int]:
    """Read what is committed, and keep none of it."""
    settings = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed"}
    few = {
        "queued.max.messages.kbytes": 64_000,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**stage.client, **settings, **few})
    ends = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    left = len(ends)
    while left:
        message = consumer.poll(60)
        assert message is not None, "nothing more came"
        if message.error() is not None:
            left -= 1
        else:
            yield number_of(message.value() or b"")
    consumer.close()


class _Peaks:
    """The most memory that the processes of a driver had: its JVM, and Python processes together."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.jvm_bytes = 0
        self.python_bytes = 0

    def look(self) -> bool:
        """Look once, and say whether the driver has ended."""
        resident = {"java": 0, "python": 0}
        for pid in session_members(self._driver.service.pid):
            try:
                process = psutil.Process(pid)
                resident["java" if process.name() == "java" else "python"] += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        self.jvm_bytes = max(self.jvm_bytes, resident["java"])
        self.python_bytes = max(self.python_bytes, resident["python"])
        status = self._driver.status
        return status is not None and status.state.is_final

    def __str__(self) -> str:
        return f"JVM {self.jvm_bytes // _MIB:,} MiB, Python {self.python_bytes // _MIB:,} MiB"


@pytest.mark.timeout(2 * _EPOCH_SECONDS)
@pytest.mark.parametrize(
    ("rows", "writers"),
    [
        pytest.param(_TEXT, "per_partition", id="1,300 records of text, a writer for each partition"),
        pytest.param(_TEXT, "single", id="1,300 records of text, one writer"),
        pytest.param(_JSON, "per_partition", id="4,000 records of JSON, a writer for each partition"),
    ],
)
def test_an_epoch_may_have_far_more_bytes_than_the_driver_has_memory(
    stage: Stage, rows: _Rows, writers: str
) -> None:
    source = _fill(stage, rows)
    sink = stage.sink("large", source, writers=writers, **rows.spec)
    driver = sink.start(conf={"spark.driver.memory": _MEMORY, SETTING: str(_ALL_BYTES)})

    peaks = _Peaks(driver)
    driver.wait_until(peaks.look, _EPOCH_SECONDS)
    code, status = driver.wait(), driver.status
    print(f"\n{rows.records:,} records, {writers}: {peaks}; {status.one_line() if status else ''}")  # noqa: T201

    assert code == ExitCode.OK, driver.log[-3000:]
    assert status is not None
    assert (status.epoch, status.rows_total) == (1, rows.records)
    assert sorted(_numbers(stage, sink.out, rows.number_of)) == list(range(rows.records))
