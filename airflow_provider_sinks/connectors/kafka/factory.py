"""What the Kafka writers of one run have in common, and how executors make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from airflow_provider_sinks.connectors.kafka.limits import read_limits
from airflow_provider_sinks.connectors.kafka.writer import KafkaEpochWriter
from airflow_provider_sinks.core.connection.resolved import KafkaOptions


@dataclass(frozen=True)
class KafkaTopics:
    """The topics that a writer writes to.

    :param data: for rows.
    :param progress: for the record.
    :param dead_letter: for rows that did not parse, or ``None``.
    :param source: the topic that rows came from; named in the headers of dead letters.
    """

    data: str
    progress: str
    dead_letter: str | None
    source: str


@dataclass(frozen=True)
class KafkaWriterFactory:
    """Makes Kafka writers on executors.

    :param sink: the sink's name.
    :param run: the run that the writers belong to.
    :param generation: its generation.
    :param prefix: the spec's prefix of transactional ids.
    :param options: the connection; holds secrets and is never printed.
    :param transaction_timeout: after it the broker aborts what was not committed.
    :param compression: the codec of the data topic's batches.
    :param holder: the producer and its epoch that hold the driver's id for this run; ``None`` where the
        broker cannot tell.
    """

    sink: str
    run: str
    generation: int
    prefix: str
    topics: KafkaTopics
    transaction_timeout: timedelta
    compression: str
    options: KafkaOptions = field(repr=False)
    holder: tuple[int, int] | None = None

    def taken_bytes(self) -> int:
        """Return how large key and value of a row may be so that the data topic takes it for sure.

        :raises UnavailableError: the topic's limit could not be asked for.
        """
        data = self.topics.data
        return read_limits(self.options, [data], self.compression)[data].surely_taken_bytes

    def prepare(self, writer: str) -> KafkaEpochWriter:
        """Return a writer whose producer connects in the background."""
        return KafkaEpochWriter(self, writer)
