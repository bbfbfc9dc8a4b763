from __future__ import annotations

import pytest

from airflow_provider_sinks.core.connection.resolved import KafkaOptions
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from tests.contract.kafka_harness import KafkaHarness


class TestKafka(ExecutorCommits):
    @pytest.fixture
    def harness(self, kafka_options: KafkaOptions) -> KafkaHarness:
        return KafkaHarness(kafka_options)
