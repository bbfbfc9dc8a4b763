"""The Kafka client: what is there, three-valued and without a trace; and topics made as they must be.

Looking never creates anything, also where a broker makes topics that are asked for: topics are found in the
listing of all topics and described by the admin API, which does not create. *Missing* is said only when
both say so. Kafka answers ``TOPIC_AUTHORIZATION_FAILED`` for a topic that the user may not describe whether
it exists or not, and hides it from the listing: that is *unknown*, with the operation that an ACL must
grant.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType, TopicDescription

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.connectors.base import HeldUp
from airflow_provider_sinks.connectors.kafka.client_failures import code_of, text_of
from airflow_provider_sinks.connectors.kafka.connection import END, FIRST, KafkaConnection
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressLog
from airflow_provider_sinks.connectors.kafka.topic_facts import TopicFacts, as_progress_topic, grant
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, UnavailableError
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.log_place import LogPlace

T = TypeVar("T")

_VISIBLE_SECONDS = 30.0
_PATIENCE_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.1
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_NOT_THERE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})


class KafkaClient:
    """A client of one cluster. Use it as a context manager.

    :param options: the connection.
    :param timeout_seconds: how long one answer may take.
    """

    _shared: ClassVar[dict[tuple[int, str], KafkaClient]] = {}
    _sharing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, options: KafkaOptions, timeout_seconds: float = 10.0) -> None:
        self._connection = KafkaConnection(options, timeout_seconds)
        self._logs: dict[str, ProgressLog] = {}
        self._clusters: dict[str, str] = {}

    @classmethod
    def shared(cls, options: KafkaOptions) -> KafkaClient:
        """Return the client that everyone in this process shares: a new one takes 20 ms to connect."""
        key = (os.getpid(), repr(sorted(options.librdkafka().items())))  # a fork has no client threads
        with cls._sharing:
            if key not in cls._shared:
                cls._shared[key] = cls(options)
            return cls._shared[key]

    @property
    def bootstrap(self) -> str:
        """The brokers that are asked first."""
        return self._connection.servers

    def cluster_id(self) -> str:
        """Return the id of the cluster.

        :raises AuthenticationError: the credentials were refused.
        :raises UnavailableError: no broker answered.
        """
        return self._connection.cluster_id()

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Return which topics these are: existence, ids and partitions. Cheap enough for every epoch.

        The id of the cluster comes with a listing of all topics, so it is asked for only about what is not
        known: an id of a topic is made at random by its cluster, and says which cluster that is ever after.
        """
        cluster_id = "" if self._clusters else self.cluster_id()
        wanted = list(dict.fromkeys(names))
        timeout = self._connection.timeout_seconds
        futures = self._connection.admin.describe_topics(TopicCollection(wanted), request_timeout=timeout)
        described = [self._described(name, futures[name]) for name in wanted]
        unknown = [topic for topic in described if topic.id not in self._clusters]
        if unknown and not cluster_id:
            cluster_id = self.cluster_id()
        self._clusters.update({topic.id: cluster_id for topic in unknown if topic.id})
        placed = [replace(topic, system=self._clusters.get(topic.id, cluster_id)) for topic in described]
        return {topic.name: topic for topic in placed}

    def observe_topics(
        self, names: Collection[str], policy_of: Collection[str] = ()
    ) -> dict[str, TopicFacts]:
        """Return everything that can be seen of some topics: also offsets, and the cleanup policy.

        Looks again for a few seconds at what is just being made, deleted or elected.

        :param policy_of: the topics whose cleanup policy matters.
        """
        look = functools.partial(self._look, names, policy_of)
        return look_until(look, _is_settled, _PATIENCE_SECONDS, _LOOK_AGAIN_SECONDS)

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, LogPlace]:
        """Return where partitions of a topic end, of those whose newest leader epoch is known."""
        found = _of(topic, self._connection.ends((topic, partition) for partition in partitions))
        return {partition: end for partition, end in found.items() if end.leader_epoch >= 0}

    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the settings of some topics; none where this user may not see them, or no topic is there.

        :raises UnavailableError: no answer in time.
        """
        resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(names)}
        timeout = self._connection.timeout_seconds
        asked = list(resources.values())
        futures = self._connection.admin.describe_configs(asked, request_timeout=timeout)
        return {name: self._config(futures[asked]) for name, asked in resources.items()}

    def read_progress(
        self, topic: str, sink: str, timeout_seconds: float, held_up: HeldUp = lambda _: None
    ) -> History:
        """Return what a progress topic says about a sink, up to its end at the time of the call.

        :param timeout_seconds: longer than the longest transaction in that topic may be open, plus 15 s.
        :param held_up: told once when that takes some seconds, and why.
        :raises UnavailableError: the end was not reached.
        """
        if topic not in self._logs:
            self._logs[topic] = ProgressLog(self._connection.options, topic, self._connection.timeout_seconds)
        return self._logs[topic].read(sink, timeout_seconds, held_up)

    def ensure_topic(self, topic: CreateTopic) -> TopicFacts:
        """Make a topic if it is not there, wait until it is visible, and return what is there then.

        "Already exists" is looked at again, not taken for success.

        :raises ConfigurationError: the broker refuses to make it like this, or refuses us.
        :raises UnavailableError: it did not become visible, or is a progress topic of another shape.
        """
        try:
            self._connection.create_topic(topic, f'create topic "{topic.name}"')
        except KafkaException as error:
            if code_of(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._not_created(topic, error) from error
        facts = self._wait_until_visible(topic)
        judged = as_progress_topic(facts, "", self.bootstrap) if topic.role is Role.PROGRESS else facts
        if judged.unfit or judged.hidden:
            raise UnavailableError(
                f'{topic.role} "{topic.name}" was made by somebody else meanwhile, and differently',
                f"It is there as {facts}, cleanup.policy={facts.cleanup_policy}.",
                "Try again: the next start looks at it anew and says what must change.",
            )
        return facts

    def close(self) -> None:
        """Drop all clients."""
        for log in self._logs.values():
            log.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, names: Collection[str], policy_of: Collection[str]) -> dict[str, TopicFacts]:
        described = self.describe_topics(names)  # first, because it notices refused credentials at once
        listed = self._connection.listing().topics
        facts = {name: _confirmed(topic, name in listed) for name, topic in described.items()}
        present = [topic for topic in facts.values() if topic.existence is Existence.PRESENT]
        for topic in self._with_offsets(present):
            facts[topic.name] = self._with_policy(topic) if topic.name in policy_of else topic
        return facts

    def _described(self, name: str, future: Future[TopicDescription]) -> TopicFacts:
        """Return what a topic is, but for its cluster."""
        try:
            found = self._connection.wait(future, f'describe topic "{name}"')
        except KafkaException as error:
            if code_of(error) in _NOT_THERE:
                return TopicFacts(name, Existence.MISSING)
            return self._not_seen(TopicFacts(name, Existence.UNKNOWN), error, "Describe")
        topic_id = spelled(str(found.topic_id))
        if topic_id == _NO_ID:
            why = "the broker gives topics no id; Kafka 2.8 or newer is needed"
            return TopicFacts(name, Existence.UNKNOWN, reason=why)
        copies = len(found.partitions[0].replicas) if found.partitions else 0
        partitions = len(found.partitions)
        return TopicFacts(name, Existence.PRESENT, "", topic_id, partitions, replication_factor=copies)

    def _with_offsets(self, topics: Collection[TopicFacts]) -> Iterator[TopicFacts]:
        places = [(topic.name, partition) for topic in topics for partition in range(topic.partitions)]
        first = self._connection.offsets(places, FIRST)
        stable = self._connection.offsets(places, END, IsolationLevel.READ_COMMITTED)
        ends = self._connection.ends(places)  # asked last: no other one lies behind it
        for topic in topics:
            low, until = (_of(topic.name, found) for found in (first, stable))
            last = _of(topic.name, ends)
            high = {partition: end.offset for partition, end in last.items()}
            answered = low.keys() & until.keys() & high.keys()
            leaderless = sorted(set(range(topic.partitions)) - answered)
            if leaderless:
                why = f"partitions without a leader: {leaderless}"
                yield replace(topic, existence=Existence.UNKNOWN, reason=why)
            else:
                epochs = {p: end.leader_epoch for p, end in last.items() if end.leader_epoch >= 0}
                yield replace(topic, low=low, high=high, stable=until, leader_epochs=epochs)

    def _with_policy(self, topic: TopicFacts) -> TopicFacts:
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        timeout = self._connection.timeout_seconds
        future = self._connection.admin.describe_configs([resource], request_timeout=timeout)[resource]
        try:
            config: Mapping[str, Any] = self._connection.wait(future, "describe the configuration")
        except KafkaException as error:
            return self._not_seen(topic, error, "DescribeConfigs")
        policies = str(config["cleanup.policy"].value).split(",")
        return replace(topic, cleanup_policy=",".join(sorted(policy.strip() for policy in policies)))

    def _not_seen(self, topic: TopicFacts, error: KafkaException, operation: str) -> TopicFacts:
        if code_of(error) != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return replace(topic, reason=text_of(error))
        how = grant(topic.name, operation, self.bootstrap)
        return replace(topic, reason=text_of(error), denied=operation, grant=how)

    def _config(self, future: Future[Any]) -> dict[str, str]:
        try:
            config: Mapping[str, Any] = self._connection.wait(future, "describe the configuration")
        except KafkaException:
            return {}
        return {name: str(entry.value) for name, entry in config.items()}

    def _wait_until_visible(self, topic: CreateTopic) -> TopicFacts:
        policy_of = [topic.name] if topic.role is Role.PROGRESS else []
        facts = look_until(
            lambda: self.observe_topics([topic.name], policy_of)[topic.name],
            lambda seen: seen.existence is Existence.PRESENT,
            _VISIBLE_SECONDS,
            _LOOK_AGAIN_SECONDS,
        )
        if facts.existence is Existence.PRESENT:
            return facts
        raise UnavailableError(
            f'{topic.role} "{topic.name}" did not become visible',
            f"{_VISIBLE_SECONDS:.0f} s later Kafka at {self.bootstrap} shows it as {facts}.",
            "Try again; look at the brokers' logs if it stays like this.",
        )

    def _not_created(self, topic: CreateTopic, error: KafkaException) -> ConfigurationError:
        config = "".join(f" --config {name}={value}" for name, value in sorted(topic.config.items()))
        copies = f" --replication-factor {topic.replication_factor}" if topic.replication_factor else ""
        return ConfigurationError(
            f'{topic.role} "{topic.name}" was not created',
            [Problem(topic.name, text_of(error))],
            "Correct the spec, or let an administrator make it: kafka-topics.sh --bootstrap-server "
            f"{self.bootstrap} --create --topic {topic.name} --partitions {topic.partitions}{copies}{config}",
        ).of(self._connection.options.conn_id)


def spelled(topic_id: str) -> str:
    """Return a topic id as ``kafka-topics.sh`` prints it; librdkafka uses the other alphabet of base64."""
    return topic_id.replace("+", "-").replace("/", "_")


def _of(topic: str, found: Mapping[tuple[str, int], T]) -> dict[int, T]:
    return {partition: value for (name, partition), value in found.items() if name == topic}


def _confirmed(facts: TopicFacts, is_listed: bool) -> TopicFacts:
    """Two questions, asked one after the other, must have the same answer."""
    answered = facts.existence is not Existence.UNKNOWN
    if answered and is_listed != (facts.existence is Existence.PRESENT):
        why = "it is being created or deleted: the listing and the description differ"
        return TopicFacts(facts.name, Existence.UNKNOWN, facts.system, reason=why)
    return facts


def _is_settled(seen: Mapping[str, TopicFacts]) -> bool:
    """Whether nothing of it is just being made, deleted or elected."""
    return not any(facts.existence is Existence.UNKNOWN and not facts.denied for facts in seen.values())
