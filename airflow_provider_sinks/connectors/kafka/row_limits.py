"""Which rows of a sink its topics take: asked before they are produced, and known when one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka.carried import Carried, header_bytes, headers_of
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.deliveries import Undelivered
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit, batch_bytes, read_limits
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.record_size import CLIENT_LIMIT, TOPIC_LIMIT
from airflow_provider_sinks.connectors.kafka.row_keys import RowKeys
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.topic_facts import grant
from airflow_provider_sinks.connectors.rows import byte_lengths
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.run import KafkaTopics


INVALID = frozenset(
    {
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001  public in C
    }
)
"""What a broker says of a record that it finds invalid, such as one without a key."""


class RowLimits:
    """The limits of a writer's topics, as they were when it was made.

    :param options: the connection; holds secrets and is never printed.
    :param sink: the sink's name.
    :param topics: those of the writer.
    :param compression: the codec of their batches.
    :param times: of the rows.
    :raises UnavailableError: the limits could not be asked for.
    """

    def __init__(
        self, options: KafkaOptions, sink: str, topics: KafkaTopics, compression: str, times: RowTimes
    ) -> None:
        self.undelivered: Undelivered | None = None
        self._options = options
        self._sink = sink
        self._topics = topics
        self._compression = compression
        self._times = times
        self._known = self._made_with = self._read()
        self.keys = RowKeys(options, sink, topics, self._made_with, self._read)

    @property
    def batch_bytes(self) -> int:
        """How large a batch of several rows may become, whichever of the topics it is for."""
        return batch_bytes(self._known)

    def of(self, topic: str) -> TopicLimit:
        """Return the limit of one topic."""
        return self._known[topic]

    def too_large(self, rows: pa.RecordBatch) -> dict[int, str]:
        """Return which rows the data topic does not take, by index, and why.

        :raises RejectedRowError: when such a row has nowhere else to go.
        """
        keys, values, data = rows.column(KEY), rows.column(VALUE), self._topics.data
        headers = Carried.of(rows).headers
        sizes = byte_lengths(keys) + byte_lengths(values)
        if headers is not None:
            sizes += header_bytes(headers)
        suspects = np.flatnonzero(sizes > self.of(data).surely_taken_bytes)
        if not len(suspects):
            return {}
        self._known = self._read()  # the limit may have been raised since
        judged = {
            row: self.of(data).why_not(keys[row].as_py(), values[row].as_py(), headers_of(headers, row))
            for row in suspects.tolist()
        }
        refused = {row: why for row, why in judged.items() if why}
        if refused and self._topics.dead_letter is None:
            row, why = next(iter(refused.items()))
            raise self.rejection(why, row)
        return {row: f'Topic "{data}" does not take the row. {why}' for row, why in refused.items()}

    def note_undelivered(self, error: KafkaError, topic: str, size_bytes: int) -> None:
        """Remember the first message that a broker refused; those behind it fail because of it."""
        self.undelivered = Undelivered(error, topic, size_bytes).behind(self.undelivered)

    @property
    def first_failure(self) -> KafkaError | None:
        """Why the first message was refused, where one was."""
        return None if self.undelivered is None else self.undelivered.error

    def forget(self) -> None:
        """Forget what was refused."""
        self.undelivered = None

    def demand_delivered(self, cause: KafkaError | None = None) -> None:
        """Raise when a broker refused a message for its size, its time or because it has no key.

        It knows best: the topic's limit may be lower than when this writer asked. Then the task is repeated
        by a writer that asks anew and tells which row it is.

        :param cause: what the transaction says of it, where it was asked.
        :raises UnavailableError: the limit has changed, or another attempt may help.
        :raises RejectedRowError: it has not, or is hidden, so that no attempt can help.
        """
        refused = self.undelivered
        if refused is None:
            return
        codes = {refused.error.code(), cause.code() if cause else None}
        if self._is_of_time(codes):
            raise self._times.refusal()
        if INVALID & codes:
            self.keys.demand_taken(refused.topic)
        if refused.error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return
        if self._read() != self._made_with:
            raise UnavailableError(
                f'{TOPIC_LIMIT} of topic "{refused.topic}" has changed',
                f"It refused a record of {refused.size_bytes:,} bytes.",
                "The task is repeated; nothing of it is visible.",
            )
        raise self.rejection(f"The broker refused a record of {refused.size_bytes:,} bytes.", None)

    def _is_of_time(self, codes: set[int | None]) -> bool:
        """Whether a message was refused for its time.

        Of a batch with several such messages, their reports say no more than that each is invalid, or stood
        beside one; only the transaction has the reason. Where rows of a topic with hidden limits have times,
        that is reason enough to ask.
        """
        return KafkaError.INVALID_TIMESTAMP in codes or (self._times.are_hidden and bool(INVALID & codes))

    def rejection(self, detail: str, row: int | None) -> RejectedRowError:
        """Return our error for a row.

        :param row: its index, where it is known.
        """
        servers, data = self._options.bootstrap_servers, self._topics.data
        aside = "" if self._topics.dead_letter else " Or set such rows aside: `dead_letter: {topic: ...}`."
        if row is None and self.of(data).topic_bytes is None:
            aside += f" To have the row named: {grant(data, 'DescribeConfigs', servers)}"
        return RejectedRowError(
            f'topic "{data}" does not take a row of sink "{self._sink}"',
            detail,
            f"Raise the limit of the topic: kafka-configs.sh --bootstrap-server {servers} --alter "
            f"--entity-type topics --entity-name {data} --add-config {TOPIC_LIMIT}=<bytes>; and "
            f'{CLIENT_LIMIT} in the extra of connection "{self._options.conn_id}".{aside}',
            row,
        )

    def _read(self) -> Mapping[str, TopicLimit]:
        topics = [topic for topic in (self._topics.data, self._topics.dead_letter) if topic is not None]
        return read_limits(self._options, topics, self._compression)
