from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, RejectedRowError, Token, WriteResult
from airflow_provider_sinks.connectors.kafka import arrow_producer, librdkafka, limits, row_times, transaction
from airflow_provider_sinks.connectors.kafka import writer as writer_module
from airflow_provider_sinks.connectors.kafka.columns import KEY, TOMBSTONE
from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.time_limits import time_limits
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.ports import LOCALHOST
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.kafka_harness import KafkaHarness
from tests.contract.wire import KafkaWire

_HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def wire() -> Iterator[KafkaWire]:
    """The only way to the broker, once it has told a client where it is."""
    wire = KafkaWire()
    yield wire
    wire.close()


@pytest.fixture(scope="module")
def options(wire: KafkaWire, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaOptions]:
    """A connection to a broker that sends its clients, and itself, over the wire."""
    sends = {"advertised.listeners": f"PLAIN://{LOCALHOST}:{wire.port}"}
    with KafkaBroker.start(tmp_path_factory.mktemp("kafka over a wire"), extra=sends) as broker:
        host, port = broker.bootstrap.split(":")
        wire.server = (host, int(port))
        yield KafkaOptions.from_connection_extra(broker.client_config(), "k")


class TestKafka(ExecutorCommits):
    @pytest.fixture
    def harness(
        self, options: KafkaOptions, wire: KafkaWire, monkeypatch: pytest.MonkeyPatch
    ) -> KafkaHarness:
        """A fenced writer waits for a newer start to announce itself: here there is one at once, or none."""
        monkeypatch.setattr(transaction, "_SUCCESSOR_WAIT_SECONDS", 1.0)
        return KafkaHarness(options, wire)

    def test_rows_go_as_objects_where_librdkafka_was_not_tested_and_that_is_said_once(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(librdkafka, "untested", lambda: "librdkafka 9 is untested.")
        monkeypatch.setattr(arrow_producer, "ArrowProducer", None)  # nobody may ask for it
        start, said = PlayedStart(harness), list[str]()
        monkeypatch.setattr(start.connector, "_say", said.append)

        start.start().epoch(1, {0: range(4), 1: range(2)}, bad=[2])

        assert said == [
            "rows go to Kafka as Python objects, which takes more processor time: librdkafka 9 is untested."
        ]
        assert harness.visible() == [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)]
        assert harness.set_aside() == [(0, 2)]

    def test_rows_whose_times_the_broker_refuses_by_hidden_limits_are_set_aside(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that it finds out itself; nobody else knows that it is an hour ahead, and a day ago."""
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, topic: time_limits(topic, {}))
        start = PlayedStart(harness).start()
        harness.configure(message_timestamp_before_max_ms=str(24 * _HOUR_MS))
        now, writer = int(time.time() * 1000), start.factory.prepare("p1")
        harness.made.append(writer)
        hours = [0, -1, 2, -23, 0.9, 1.1, -25, 3]
        rows = harness.timed([int(now + hour * _HOUR_MS) for hour in hours])
        writer.open()
        writer.begin_epoch(1)

        written = sum((writer.write_batch(rows.slice(at, 4)) for at in (0, 4)), WriteResult(0, 0, 0))
        writer.flush()
        token = writer.pre_commit(start.record(1, {1: 0}, {1: 8}, rows=written.rows, rows_total=written.rows))
        writer.commit_epoch()

        assert writer.last is not None
        assert (token.rows, writer.last.rows, writer.last.dead_total + written.dead) == (4, 4, 4)
        assert harness.visible() == [(1, 0), (1, 1), (1, 3), (1, 4)]
        assert harness.set_aside() == [(1, 2), (1, 5), (1, 6), (1, 7)]
        assert all("the topic's limits are hidden" in why for why in harness.why_set_aside())

    def test_limits_that_become_hidden_within_an_epoch_lose_no_row_that_came_before(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What came while they could be read is not kept: giving it up would lose it."""
        start, now = PlayedStart(harness).start(), int(time.time() * 1000)
        rows = harness.timed([now, now, now, now + 3 * _HOUR_MS])
        first = start.factory.prepare("p1")
        first.open()
        first.begin_epoch(1)
        first.write_batch(rows.slice(0, 2))
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, topic: time_limits(topic, {}))

        with pytest.raises(UnavailableError, match="can no longer be read"):
            _write_rest(first, rows.slice(2), start.record(1, {1: 0}, {1: 4}, rows=4))
        first.rollback_epoch()
        first.close()
        _run(start, rows, 4)

        assert harness.visible() == [(1, 0), (1, 1), (1, 2)]
        assert harness.set_aside() == [(1, 3)]

    def test_a_delete_with_a_tombstone_is_set_aside_by_hidden_limits(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, topic: time_limits(topic, {}))
        start, now = PlayedStart(harness).start(), int(time.time() * 1000)
        rows = harness.timed([now, now + 2 * _HOUR_MS])
        keys = pa.array([b"a", b"b"], pa.binary())
        rows = rows.set_column(rows.schema.get_field_index(KEY), KEY, keys)

        _run(start, rows.append_column(TOMBSTONE, pa.array([False, True])), 2)

        assert harness.visible() == [(1, 0)]
        assert harness.set_aside() == [(1, 1)]

    def test_the_newest_row_of_a_key_that_the_broker_takes_is_written_also_by_hidden_limits(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, topic: time_limits(topic, {}))
        start, now = PlayedStart(harness).start(), int(time.time() * 1000)
        assert isinstance(start.factory, KafkaWriterFactory)
        writer = replace(start.factory, compacts=True).prepare("p1")
        harness.made.append(writer)
        rows = harness.timed([int(now + hour * _HOUR_MS) for hour in (0, 2, 0, 0, 3, 0)])
        keys = pa.array([b"a", b"a", b"b", b"b", b"c", b"d"], pa.binary())
        rows = rows.set_column(rows.schema.get_field_index(KEY), KEY, keys)
        writer.open()
        writer.begin_epoch(1)

        written = sum((writer.write_batch(rows.slice(at, 3)) for at in (0, 3)), WriteResult(0, 0, 0))
        token = _end(writer, start.record(1, {1: 0}, {1: 6}, rows=written.rows, rows_total=written.rows))

        assert writer.last is not None
        assert (token.rows, writer.last.rows, writer.last.dead_total + written.dead) == (4, 4, 2)
        assert harness.visible() == [(1, 0), (1, 3), (1, 5)]
        assert harness.set_aside() == [(1, 1), (1, 4)]

    def test_rows_without_a_key_are_set_aside_once_the_topic_is_compacted(
        self, harness: KafkaHarness
    ) -> None:
        """A writer that was opened before is told by the broker; the one behind it asks anew."""
        start, rows = PlayedStart(harness).start(), harness.keyed([b"a", None, b"", None])
        first = start.factory.prepare("p1")
        first.open()
        first.begin_epoch(1)
        harness.configure(cleanup_policy="compact")

        with pytest.raises(UnavailableError, match=r"cleanup.policy of topic .* has changed"):
            _write_rest(first, rows, start.record(1, {1: 0}, {1: 4}, rows=4))
        first.rollback_epoch()
        first.close()
        _run(start, rows, 4)

        assert harness.visible() == [(1, 0), (1, 2)]
        assert harness.set_aside() == [(1, 1), (1, 3)]
        assert all(
            "is compacted, and takes no record without a key" in why for why in harness.why_set_aside()
        )

    @pytest.mark.parametrize("has_times", [True, False], ids=["with times", "without"])
    def test_rows_without_a_key_are_set_aside_also_where_nobody_may_see_why(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch, *, has_times: bool
    ) -> None:
        monkeypatch.setattr(limits, "is_compacted", lambda _: None)
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, topic: time_limits(topic, {}))
        start, rows = PlayedStart(harness).start(), harness.keyed([None, b"a"], has_times=has_times)
        harness.configure(cleanup_policy="compact")

        _run(start, rows, 2)

        assert harness.visible() == [(1, 1)]
        assert harness.set_aside() == [(1, 0)]
        assert all("takes no record without a key" in why for why in harness.why_set_aside())

    def test_a_hidden_topic_that_is_compacted_under_a_writer_repeats_its_task_once(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "is_compacted", lambda _: None)
        start, rows = PlayedStart(harness).start(), harness.keyed([None, b"a"])
        first = start.factory.prepare("p1")
        first.open()
        first.begin_epoch(1)
        first.write_batch(rows.slice(1))
        _end(first, start.record(1, {1: 0}, {1: 1}, rows=1))
        harness.configure(cleanup_policy="compact")
        first.begin_epoch(2)

        with pytest.raises(UnavailableError, match=r"cleanup.policy of topic .* has changed"):
            _write_rest(first, rows, start.record(2, {1: 1}, {1: 3}, rows=2))
        first.rollback_epoch()
        first.close()
        _run(start, rows, 2)

        assert harness.set_aside() == [(1, 0)]

    def test_a_record_that_is_refused_right_behind_the_question_is_final(
        self, harness: KafkaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else what a broker refuses for another reason would be tried again without end."""
        monkeypatch.setattr(limits, "is_compacted", lambda _: None)
        monkeypatch.setattr(writer_module, "takes_keyless", lambda *_: True)
        start, rows = PlayedStart(harness).start(), harness.keyed([None, b"a"])
        harness.configure(cleanup_policy="compact")

        with pytest.raises(RejectedRowError, match=r"takes no row of sink .* without a key") as raised:
            _run(start, rows, 2)

        assert "--operation DescribeConfigs --topic" in raised.value.hint
        assert harness.visible() == harness.set_aside() == []

    def test_times_are_judged_anew_behind_a_limit_that_was_lowered(self, harness: KafkaHarness) -> None:
        start = PlayedStart(harness).start()
        now = int(time.time() * 1000)
        rows = harness.timed([now, now - 3 * _HOUR_MS])
        first = start.factory.prepare("p1")
        first.open()
        first.begin_epoch(1)
        first.write_batch(rows.slice(0, 1))
        harness.configure(message_timestamp_before_max_ms=str(_HOUR_MS))
        first.write_batch(rows.slice(1))

        with pytest.raises(UnavailableError, match="have changed"):
            _end(first, start.record(1, {1: 0}, {1: 2}, rows=2))
        first.rollback_epoch()
        first.close()
        _run(start, rows, 2)

        assert harness.visible() == [(1, 0)]
        assert harness.set_aside() == [(1, 1)]


def _run(start: PlayedStart, rows: pa.RecordBatch, end: int) -> None:
    """Write and commit rows by a new writer."""
    writer = start.factory.prepare("p1")
    start.harness.made.append(writer)
    writer.open()
    writer.begin_epoch(1)
    written = writer.write_batch(rows)
    _end(writer, start.record(1, {1: 0}, {1: end}, rows=written.rows, rows_total=written.rows))


def _write_rest(writer: EpochWriter, rows: pa.RecordBatch, record: ProgressRecord) -> None:
    writer.write_batch(rows)
    _end(writer, record)


def _end(writer: EpochWriter, record: ProgressRecord) -> Token:
    writer.flush()
    token = writer.pre_commit(record)
    writer.commit_epoch()
    return token
