"""Sizes of messages that a topic takes, while somebody changes its limit under a writer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka import row_limits
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.run import KafkaTopics
from airflow_provider_sinks.core.errors import UnavailableError

_OPTIONS = KafkaOptions.from_connection_extra({"bootstrap.servers": "b:1"}, "k")
_TOPICS = KafkaTopics("data", "progress", "dead", "in")


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The limit of each topic, as somebody changes it."""
    limit = {"bytes": 1_000_000}

    def read(_: KafkaOptions, names: list[str], __: str) -> dict[str, TopicLimit]:
        return {name: TopicLimit(name, limit["bytes"], 10_000_000, "none") for name in names}

    monkeypatch.setattr(row_limits, "read_limits", read)
    return limit


def _limits() -> RowLimits:
    return RowLimits(_OPTIONS, "s", _TOPICS, "none", RowTimes(_OPTIONS, "s", _TOPICS))


def _row(size_bytes: int) -> pa.RecordBatch:
    found = {KEY: pa.array([None], pa.binary()), VALUE: pa.array([b"x" * size_bytes])}
    return pa.RecordBatch.from_pydict(found)


def test_a_batch_for_a_limit_that_was_lowered_is_repeated_also_where_a_row_has_told_of_it(
    topic: dict[str, int],
) -> None:
    """Its writer fills batches for the old one as long as it lives; one that is made anew does not."""
    limits = _limits()
    topic["bytes"] = 500_000
    assert limits.too_large(_row(1_200_000))
    limits.note_undelivered(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "data", 600_000)

    with pytest.raises(UnavailableError, match="has changed"):
        limits.demand_delivered()


def test_a_row_that_a_limit_does_not_take_which_nobody_changed_stops_the_sink(topic: dict[str, int]) -> None:
    limits = _limits()
    limits.note_undelivered(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "data", topic["bytes"] + 1)

    with pytest.raises(RejectedRowError, match="does not take a row"):
        limits.demand_delivered()
