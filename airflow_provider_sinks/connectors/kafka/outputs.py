"""What a reset does to a topic that a sink wrote to: empties it, or deletes it so that it can be made anew.

Each act looks first whether the topic is still the one that the plan was made for, by its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, ConfigSource, OffsetSpec, ResourceType

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.connectors.kafka.client_failures import code_of, text_of
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, RefusedError, UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput

_GONE_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.1
_DENIED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


class Outputs:
    """The topics of a target's cluster, in the hands of a reset. Use it as a context manager.

    :param options: the target's connection.
    :param client: looks at topics; the caller closes it.
    """

    def __init__(self, options: KafkaOptions, client: KafkaClient) -> None:
        self._connection = KafkaConnection(options)
        self._client = client

    def settings(self, topic: str) -> dict[str, str]:
        """Return what somebody has set for a topic, by the names of Kafka's options.

        :raises UnavailableError: it may not be seen.
        """
        resource = ConfigResource(ResourceType.TOPIC, topic)
        future = self._connection.admin.describe_configs([resource])[resource]
        try:
            entries = self._connection.wait(future, f'describe the configuration of "{topic}"')
        except KafkaException as error:
            raise UnavailableError(
                f'the configuration of topic "{topic}" could not be seen',
                text_of(error),
                "Allow DescribeConfigs on the topic, so that it can be made anew as it was.",
            ) from error
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: str(e.value) for name, e in sorted(entries.items()) if e.source == own}

    def empty(self, step: EmptyOutput) -> None:
        """Delete the records of a topic.

        :raises RefusedError: it is another topic by now.
        """
        self._demand_same(step.facts.name, step.facts.id)
        ends = [TopicPartition(step.facts.name, partition, at) for partition, at in step.facts.high.items()]
        try:
            for future in self._connection.admin.delete_records(ends).values():
                self._connection.wait(future, f'delete records of "{step.facts.name}"')
        except KafkaException as error:
            raise self._not_done(
                f'topic "{step.facts.name}" was not emptied', step.facts.name, error
            ) from error

    def delete(self, step: DeleteOutput) -> None:
        """Delete a topic and return when nobody sees it any more; one that is gone is fine.

        :raises RefusedError: it is another topic by now.
        :raises UnavailableError: it did not go away.
        """
        if self._client.observe_topics([step.facts.name])[step.facts.name].existence is Existence.MISSING:
            return
        self._demand_same(step.facts.name, step.facts.id)
        future = self._connection.admin.delete_topics([step.facts.name])[step.facts.name]
        try:
            self._connection.wait(future, f'delete topic "{step.facts.name}"')
        except KafkaException as error:
            raise self._not_done(
                f'topic "{step.facts.name}" was not deleted', step.facts.name, error
            ) from error
        self._wait_gone(step.facts.name)

    def close(self) -> None:
        """Drop the client."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _demand_same(self, name: str, topic_id: str) -> None:
        facts = self._client.describe_topics([name])[name]
        if facts.id != topic_id:
            raise RefusedError(
                f'topic "{name}" is not the one any more that was looked at',
                f"It had id {topic_id}, now there is {facts}.",
                "Somebody else changes it at this moment; look again before anything is deleted.",
            )

    def _wait_gone(self, name: str) -> None:
        facts = look_until(
            lambda: self._client.observe_topics([name])[name],
            lambda seen: seen.existence is Existence.MISSING,
            _GONE_SECONDS,
            _LOOK_AGAIN_SECONDS,
        )
        if facts.existence is not Existence.MISSING:
            raise UnavailableError(
                f'topic "{name}" was deleted and is still there',
                f"{_GONE_SECONDS:.0f} s later Kafka at {self._connection.servers} shows {facts}.",
                "Run the same again once it is gone; delete.topic.enable must be true on the brokers.",
            )

    def _not_done(self, primary: str, topic: str, error: KafkaException) -> ConfigurationError:
        grant = (
            f"kafka-acls.sh --bootstrap-server {self._connection.servers} --add --allow-principal "
            f"User:<user of the connection> --operation Delete --topic {topic}"
        )
        hint = grant if code_of(error) in _DENIED else ""
        return ConfigurationError(primary, [Problem(topic, text_of(error))], hint)


def offsets_at(connection: KafkaConnection, topic: str, partitions: int, time_ms: int) -> Mapping[int, int]:
    """Return the offset of the first record that is not older than a time, where there is one."""
    places = [(topic, partition) for partition in range(partitions)]
    found = connection.offsets(places, OffsetSpec.for_timestamp(time_ms))
    return {partition: at for (_, partition), at in found.items() if at >= 0}
