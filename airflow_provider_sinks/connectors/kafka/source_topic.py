"""The topic that a sink reads: see :class:`airflow_provider_sinks.connectors.source.SinkSource`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.kept_log import kept_log
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.outputs import offsets_at
from airflow_provider_sinks.connectors.kafka.sample import record_bytes
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.connectors.source import ReadRange
from airflow_provider_sinks.core.decision.facts import ResourceFacts
from airflow_provider_sinks.core.progress.log_place import LogPlace


class SourceTopic:
    """One topic, on one connection."""

    def __init__(self, options: KafkaOptions, topic: str) -> None:
        self._options = options
        self._topic = topic
        self._made: KafkaClient | None = None
        self._making = threading.Lock()

    @property
    def _client(self) -> KafkaClient:
        with self._making:
            if self._made is None:
                self._made = KafkaClient(self._options)
            return self._made

    def observe(self) -> ResourceFacts:
        """Return the topic with its offsets."""
        return self._client.observe_topics([self._topic])[self._topic]

    def identify(self) -> ResourceFacts:
        """Return which topic it is."""
        return self._client.describe_topics([self._topic])[self._topic]

    def ends(self, partitions: Iterable[int]) -> Mapping[int, LogPlace]:
        """Return where partitions end, and under which leader epoch."""
        return self._client.ends(self._topic, partitions)

    def kept(self, places: Mapping[int, LogPlace]) -> Mapping[int, int]:
        """Ask the brokers where they have cut the log."""
        return kept_log(self._options, self._topic, places) if places else {}

    def offsets_at(self, time_ms: int) -> Mapping[int, int]:
        """Ask for the offsets of a time."""
        partitions = self.identify().partitions
        with KafkaConnection(self._options) as connection:
            return offsets_at(connection, self._topic, partitions, time_ms)

    def record_bytes(self) -> float | None:
        """Read some of the last records."""
        facts = self.observe()
        ranges = {partition: range(facts.low[partition], end) for partition, end in facts.high.items()}
        return record_bytes(self._options, self._topic, ranges)

    def spark_options(self) -> Mapping[str, str]:
        """Return the options of Spark's Kafka source."""
        return self._options.spark_source()

    def look(self) -> TopicLook:
        """Return it with the files of its options in it: a task may run where they are not."""
        return TopicLook(self._options.with_files_read())

    def read_range(self, *, reads_on: bool) -> ReadRange:
        """Return a reader with the files of its options in it; what reads by librdkafka is loaded now."""
        from airflow_provider_sinks.connectors.kafka.range_reader import RangeReader

        return RangeReader(self._options.with_files_read(), self._topic, reads_on)

    def close(self) -> None:
        """Drop the client, if one was made."""
        if self._made is not None:
            self._made.close()


@dataclass(frozen=True)
class TopicLook:
    """Which topic has a name right now.

    :param options: hold secrets and are never printed.
    """

    options: KafkaOptions = field(repr=False)

    def __call__(self, name: str) -> ResourceFacts:
        """Ask by the client that all tasks of this process share."""
        return KafkaClient.shared(self.options).describe_topics([name])[name]
