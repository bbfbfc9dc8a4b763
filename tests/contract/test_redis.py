"""The example connector for Redis streams, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from tests.contract.redis_harness import RedisHarness
from tests.installed_connector import Installed
from tests.redis_server import RedisServer


@pytest.fixture
def harness(installed_redis: Installed, redis_server: RedisServer) -> Iterator[RedisHarness]:
    with installed_redis.found():
        harness = RedisHarness(redis_server)
        yield harness
        harness.close()


class TestRedis(ExecutorCommits):
    @pytest.fixture
    def harness(self, harness: RedisHarness) -> RedisHarness:
        return harness
