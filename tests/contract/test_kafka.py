from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_sinks.connectors.kafka import transaction
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LOCALHOST
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
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
