"""Copies of dead letters that stand in a table, in a topic beside the source: what a replay reads.

Why each letter is there once, whoever copies, however often, and wherever he dies: the holder of the one
transactional id fences every other one first, which ends what that had open; then he reads the topic to its
end, and leaves out what stands there. Whoever is overtaken commits nothing any more. A commit without an
answer has happened or not; the next one reads which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Self

from confluent_kafka import KafkaException, Producer

from airflow_provider_sinks.connectors.kafka.client_failures import Complaints
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.record_size import CLIENT_LIMIT
from airflow_provider_sinks.connectors.kafka.stored_letters import KafkaLetters
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.connectors.kafka.transactional_ids import transactional_id
from airflow_provider_sinks.connectors.kafka.transactions import fencing_failure, producer_config, warm_up
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.spelling import headers_of
from airflow_provider_sinks.core.decision.facts import Role

_TOGETHER_MAX = 1000
_TOGETHER_BYTES = 16 * 1024 * 1024
"""Of a transaction, so that it ends in time."""
_FULL_SECONDS = 0.1
_TIMEOUT = timedelta(seconds=60)
_RECORD_BYTES_MAX = 100_000_000
_PREFIX, _WRITER = "sinks", "letters"
_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(_RECORD_BYTES_MAX),
    "message.timestamp.type": "CreateTime",
}
"""A copy stays as it was made: by its offset a replay knows that it was taken."""


class KafkaLetterCopies:
    """See :class:`.stored_letters.LetterCopies`. Use it as a context manager.

    :param options: the connection of the source; hold secrets.
    :param topic: has the copies, in one partition.
    :param replay: the name of the sink that reads them.
    """

    def __init__(self, options: KafkaOptions, topic: str, replay: str) -> None:
        self._options = options
        self._topic = topic
        self._id = transactional_id(_PREFIX, replay, _WRITER)
        self._letters = KafkaLetters(options, topic)

    def all(self) -> Iterator[Letter]:
        """Yield every copy."""
        return self._letters.all()

    def add(self, letters: Callable[[], Iterable[Letter]]) -> None:
        """Fence, look what is there, and copy the rest, some in each transaction."""
        with KafkaClient(self._options) as client:
            client.ensure_topic(CreateTopic(Role.SOURCE, self._topic, 1, config=_CONFIG))
        complaints = Complaints()
        limits = {CLIENT_LIMIT: _RECORD_BYTES_MAX}
        config = {**producer_config(self._options, self._id, _TIMEOUT), **limits, "error_cb": complaints.take}
        producer = Producer(config)
        try:
            warm_up(producer)
            producer.init_transactions(_TIMEOUT.total_seconds())
            there = {letter.identity for letter in self.all()}
            for some in _parted(letter for letter in letters() if letter.identity not in there):
                self._copy(producer, some)
        except KafkaException as error:
            raise fencing_failure(self._options, complaints, error, self._id) from error
        finally:
            producer.purge()  # and dropped: to close it would abort once more, and warn where that fails

    def close(self) -> None:
        """Drop the clients."""
        self._letters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _copy(self, producer: Producer, letters: Iterable[Letter]) -> None:
        producer.begin_transaction()
        for letter in letters:
            self._put(producer, letter)
        producer.commit_transaction(_TIMEOUT.total_seconds())

    def _put(self, producer: Producer, letter: Letter) -> None:
        """Hand a copy over; a full queue is left in time, or what is in it fails, and so does the commit."""
        headers: list[tuple[str, str | bytes | None]] = [*headers_of(letter)]
        while True:
            try:
                producer.produce(
                    self._topic, letter.value, letter.key, 0, timestamp=letter.at_ms, headers=headers
                )
            except BufferError:
                producer.poll(_FULL_SECONDS)
            else:
                return


def _parted(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """Part letters into those of one transaction each."""
    some: list[Letter] = []
    size_bytes = 0
    for letter in letters:
        some.append(letter)
        size_bytes += len(letter.value or b"")
        if len(some) >= _TOGETHER_MAX or size_bytes >= _TOGETHER_BYTES:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some
