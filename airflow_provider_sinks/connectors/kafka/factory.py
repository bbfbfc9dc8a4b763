"""How executors make the Kafka writers of one run."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.connectors.kafka.limits import TopicLimit, read_limits
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.time_limits import TimeLimits, read_time_limits
from airflow_provider_sinks.connectors.kafka.writer import KafkaEpochWriter


@dataclass(frozen=True)
class KafkaWriterFactory:
    """Makes Kafka writers on executors.

    :param run: the run that they belong to.
    :param compression: the codec of the data topic's batches.
    :param compacts: of the rows of one key in an epoch only the newest is written.
    """

    run: KafkaRun
    compression: str
    compacts: bool = False

    def limit(self) -> TopicLimit:
        """Return which rows the data topic takes.

        :raises UnavailableError: that could not be asked for.
        """
        data = self.run.topics.data
        return read_limits(self.run.options, [data], self.compression)[data]

    def time_limits(self) -> TimeLimits:
        """Return which times of messages the data topic takes.

        :raises UnavailableError: they could not be asked for.
        """
        return read_time_limits(self.run.options, self.run.topics.data)

    def prepare(self, writer: str) -> KafkaEpochWriter:
        """Return a writer whose producer connects in the background."""
        return KafkaEpochWriter(self.run, self.compression, writer, compacts=self.compacts)
