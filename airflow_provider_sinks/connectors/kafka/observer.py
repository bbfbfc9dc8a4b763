"""Looks at what a decision needs of a Kafka target: the sink's topics, and its progress."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from airflow_provider_sinks.connectors.base import HeldUp
from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory
from airflow_provider_sinks.connectors.kafka.coordinators import broker_memory
from airflow_provider_sinks.connectors.kafka.foreign_progress import as_output
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_log import read_timeout_seconds
from airflow_provider_sinks.connectors.kafka.progress_reader import ProgressReader
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.kafka.topic_facts import TopicFacts, as_progress_topic
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.connectors.kafka.transactional_ids import transactional_id
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, decoded, past_epochs
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, partition_writer


class KafkaObserver:
    """An observer of one sink's topics. Creates nothing.

    :param spec: the sink.
    :param options: the target's connection.
    :param read_seconds: how long reading the progress topic may take; ``None`` is long enough to outlive a
        transaction that somebody abandoned.
    :param held_up: told once when reading takes some seconds, and why.
    """

    def __init__(
        self, spec: KafkaSink, options: KafkaOptions, read_seconds: float | None, held_up: HeldUp
    ) -> None:
        self._sink = spec.name
        self._held_up = held_up
        self._prefix = spec.transactional_id_prefix
        self._options = options
        self._broker: BrokerMemory | None = None
        self._read_seconds = read_seconds or read_timeout_seconds(spec.transaction_timeout)
        self._topics = {Role.DATA: spec.target.kafka.topic, Role.PROGRESS: spec.progress_topic}
        if spec.dead_letter is not None:
            self._topics[Role.DEAD_LETTER] = spec.dead_letter.topic
        self.client = KafkaClient(options)

    def observe(self, source: ResourceFacts) -> Observation:
        """Return everything the decision is made from, except Spark's checkpoint.

        :raises AuthenticationError: the cluster refused the credentials.
        :raises UnavailableError: the cluster did not answer.
        """
        seen = self.client.observe_topics(self._topics.values(), policy_of=[self._topics[Role.PROGRESS]])
        facts = {role: seen[name] for role, name in self._topics.items()}
        progress = as_progress_topic(facts[Role.PROGRESS], self._sink, self.client.bootstrap)
        history, reason, hint = self._history(progress)
        outputs = self._outputs(facts, history or NO_HISTORY)
        return Observation(
            source=source,
            memory=self._ask_broker(source) if history is not None and not history else None,
            data=outputs[Role.DATA],
            progress=progress,
            dead_letter=outputs.get(Role.DEAD_LETTER),
            history=history,
            history_reason=reason,
            history_hint=hint,
        )

    def identify(self) -> dict[Role, ResourceFacts]:
        """Return which topics these are right now, by role; cheap enough for every epoch."""
        seen = self.client.describe_topics(self._topics.values())
        return {role: seen[name] for role, name in self._topics.items()}

    def read_progress(self) -> History:
        """Return what the progress topic says of the sink.

        :raises UnavailableError: it could not be read to its end.
        """
        topic = self._topics[Role.PROGRESS]
        return self.client.read_progress(topic, self._sink, self._read_seconds, self._held_up)

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return the epochs whose begin the progress topic still tells.

        :raises UnavailableError: the topic could not be read to its end.
        """
        topic = self._topics[Role.PROGRESS]
        facts = self.client.observe_topics([topic])[topic]
        if facts.existence is Existence.MISSING:
            return ()
        deadline = time.monotonic() + self._read_seconds
        with ProgressReader(self._options, topic, facts.low.get(0, 0)) as reader:
            return past_epochs(decoded(reader.up_to(facts.high.get(0, 0), deadline), self._sink))

    def close(self) -> None:
        """Drop the client."""
        self.client.close()

    def _ask_broker(self, source: ResourceFacts) -> BrokerMemory:
        """Ask who remembers a sink without a record; once, because the fence of a start wipes it out."""
        if self._broker is None:
            writers = (DRIVER, SINGLE_WRITER, *map(partition_writer, range(source.partitions)))
            ids = {writer: transactional_id(self._prefix, self._sink, writer) for writer in writers}
            self._broker = broker_memory(self._options, ids)
        return self._broker

    def _outputs(self, facts: Mapping[Role, TopicFacts], history: History) -> dict[Role, TopicFacts]:
        """Look into those that the records do not name: they may hold what is not for rows."""
        known = history.identities
        before = {Role.DATA: known.data, Role.DEAD_LETTER: known.dead_letter} if known else {}
        found: dict[Role, TopicFacts] = {}
        for role in (Role.DATA, Role.DEAD_LETTER):
            if (topic := facts.get(role)) is not None:
                recorded = before.get(role)
                is_known = recorded is not None and topic.identity.compared_with(recorded).is_same
                found[role] = topic if is_known else as_output(topic, self._options)
        return found

    def _history(self, progress: ResourceFacts) -> tuple[History | None, str, str]:
        """Read the progress of the sink; not being able to is an answer too, and never an empty history."""
        if progress.existence is Existence.MISSING:
            return NO_HISTORY, "", ""
        if progress.existence is Existence.UNKNOWN or progress.partitions != 1:
            return None, progress.reason or f"it has {progress.partitions} partitions", ""
        try:
            found = self.read_progress()
        except UnavailableError as error:
            return None, error.detail or error.primary, error.hint
        return found, "", ""
