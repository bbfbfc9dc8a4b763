"""Looks at everything a decision needs: the topics of a sink on one or two clusters, and its progress."""

from __future__ import annotations

from typing import Self

from airflow_provider_sinks.connectors.kafka.coordinators import broker_memory
from airflow_provider_sinks.connectors.kafka.progress_log import HeldUp, read_timeout_seconds
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.broker_memory import BrokerMemory
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, partition_writer
from airflow_provider_sinks.core.progress.transactional_ids import transactional_id
from airflow_provider_sinks.core.spec.sink import SinkSpec


class SinkObserver:
    """An observer of one sink. Creates nothing. Use it as a context manager.

    :param spec: the sink.
    :param connections: what its connection ids stand for.
    :param read_seconds: how long reading the progress topic may take; ``None`` is long enough to outlive a
        transaction that somebody abandoned.
    :param held_up: told once when reading takes some seconds, and why.
    """

    def __init__(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None = None,
        held_up: HeldUp = lambda _: None,
    ) -> None:
        source, target = spec.source.kafka, spec.target.kafka
        self._sink = spec.name
        self._held_up = held_up
        self._prefix = spec.transactional_id_prefix
        self._options = connections.kafka(target.connection)
        self._broker: BrokerMemory | None = None
        self._read_seconds = read_seconds or read_timeout_seconds(spec.transaction_timeout)
        self._source_topic = source.topic
        self._target_topics = {Role.DATA: target.topic, Role.PROGRESS: spec.progress_topic}
        if spec.dead_letter is not None:
            self._target_topics[Role.DEAD_LETTER] = spec.dead_letter.topic
        self.target = KafkaClient(self._options)
        self.source = self.target
        if source.connection != target.connection:
            self.source = KafkaClient(connections.kafka(source.connection))

    def observe(self) -> Observation:
        """Return everything the decision is made from, except Spark's checkpoint.

        :raises AuthenticationError: a cluster refused the credentials.
        :raises UnavailableError: a cluster did not answer.
        """
        source = self.source.observe_topics([self._source_topic])[self._source_topic]
        progress_topic = self._target_topics[Role.PROGRESS]
        seen = self.target.observe_topics(self._target_topics.values(), policy_of=[progress_topic])
        facts = {role: seen[name] for role, name in self._target_topics.items()}
        history, reason, hint = self._history(facts[Role.PROGRESS])
        return Observation(
            source=source,
            broker=self._ask_broker(source) if history is not None and not history else None,
            data=facts[Role.DATA],
            progress=facts[Role.PROGRESS],
            dead_letter=facts.get(Role.DEAD_LETTER),
            history=history,
            history_reason=reason,
            history_hint=hint,
            bootstrap=self.target.bootstrap,
        )

    def identify(self) -> dict[Role, ResourceFacts]:
        """Return which topics these are right now, by role; cheap enough for every epoch."""
        seen = self.target.describe_topics(self._target_topics.values())
        facts = {role: seen[name] for role, name in self._target_topics.items()}
        return {Role.SOURCE: self.source.describe_topics([self._source_topic])[self._source_topic], **facts}

    def close(self) -> None:
        """Drop the clients."""
        self.source.close()
        if self.target is not self.source:
            self.target.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask_broker(self, source: ResourceFacts) -> BrokerMemory:
        """Ask who remembers a sink without a record; once, because the fence of a start wipes it out."""
        if self._broker is None:
            writers = (DRIVER, SINGLE_WRITER, *map(partition_writer, range(source.partitions)))
            ids = {writer: transactional_id(self._prefix, self._sink, writer) for writer in writers}
            self._broker = broker_memory(self._options, ids)
        return self._broker

    def _history(self, progress: ResourceFacts) -> tuple[History | None, str, str]:
        """Read the progress of the sink; not being able to is an answer too, and never an empty history."""
        if progress.existence is Existence.MISSING:
            return NO_HISTORY, "", ""
        if progress.existence is Existence.UNKNOWN or progress.partitions != 1:
            return None, progress.reason or f"it has {progress.partitions} partitions", ""
        try:
            found = self.target.read_progress(progress.name, self._sink, self._read_seconds, self._held_up)
        except UnavailableError as error:
            return None, error.detail or error.primary, error.hint
        return found, "", ""
