from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_sinks.connectors.kafka import arrow_producer, librdkafka, transaction
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.ports import LOCALHOST
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.kafka_harness import KafkaHarness
from tests.contract.wire import KafkaWire


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
