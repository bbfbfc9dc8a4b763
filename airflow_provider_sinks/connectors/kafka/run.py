"""One run of a sink as its Kafka target knows it: what its driver and its writers have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.transactional_ids import transactional_id
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.progress.record import WriterId


@dataclass(frozen=True)
class KafkaTopics:
    """The topics that a writer writes to.

    :param data: for rows.
    :param progress: for the record.
    :param dead_letter: for rows that did not parse, or ``None``.
    :param source: the topic that rows came from; named in the headers of dead letters where a letter does
        not name one itself.
    """

    data: str
    progress: str
    dead_letter: str | None
    source: str


@dataclass(frozen=True)
class KafkaRun:
    """One run. Pickled into tasks.

    :param sink: the sink's name.
    :param run: its uuid.
    :param generation: its generation; 0 as long as it is not announced.
    :param prefix: the spec's prefix of transactional ids.
    :param transaction_timeout: after it the broker aborts what was not committed.
    :param options: the connection; holds secrets and is never printed.
    :param holder: the producer and its epoch that hold the driver's id for this run; ``None`` where the
        broker cannot tell.
    :param spec_digest: of the spec that it runs.
    :param letters_of: the sink whose dead letters it replays, or empty.
    :param may_multiply: its query may make several rows of a record.
    """

    sink: str
    run: str
    generation: int
    prefix: str
    topics: KafkaTopics
    transaction_timeout: timedelta
    options: KafkaOptions = field(repr=False)
    holder: tuple[int, int] | None = None
    spec_digest: str = ""
    letters_of: str = ""
    may_multiply: bool = False

    def circumstances(self, epoch: int) -> Circumstances:
        """Return where the dead letters of an epoch come from."""
        return Circumstances(
            self.letters_of or self.sink,
            self.topics.source,
            self.generation,
            epoch,
            self.spec_digest,
            is_replay=bool(self.letters_of),
            may_multiply=self.may_multiply,
        )

    def id_of(self, writer: WriterId) -> str:
        """Return the transactional id of a writer."""
        return transactional_id(self.prefix, self.sink, writer)
