"""What an administrator does to topics, each step done only when a client that asks the broker sees it.

A broker answers when its controller has taken a change, and serves it a little later: a topic that is made
has no leader yet, one that is deleted is still listed, and a policy that is changed still holds. On a busy
machine that little is long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    DeletedRecords,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from airflow_provider_sinks.connectors.kafka.client_failures import is_fenced

_SECONDS = 120.0
_POLL_SECONDS = 0.05
_SILENT = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT})


def create_topic(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> None:
    """Make a topic, and return when each of its partitions answers."""
    topic = NewTopic(name, partitions, config=config)
    _placed(lambda: admin.create_topics([topic])[name])
    _until(lambda: answering(admin, name) == partitions, f"topic {name} to answer")


def delete_topic(admin: AdminClient, name: str) -> None:
    """Delete a topic, and return when the broker does not show it any more."""
    admin.delete_topics([name])[name].result(_SECONDS)
    _until(lambda: name not in names(admin), f"topic {name} to be gone")


def grow_topic(admin: AdminClient, name: str, partitions: int) -> None:
    """Add partitions to a topic until it has so many, and return when each answers."""
    _placed(lambda: admin.create_partitions([NewPartitions(name, partitions)])[name])
    _until(lambda: answering(admin, name) == partitions, f"{partitions} partitions of {name} to answer")


def configure_topic(admin: AdminClient, name: str, config: Mapping[str, str]) -> None:
    """Change options of a topic, and return when the broker shows them."""
    entries = [
        ConfigEntry(option, value, incremental_operation=AlterConfigOpType.SET)
        for option, value in config.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(_SECONDS)
    _until(lambda: config.items() <= options(admin, name).items(), f"topic {name} to have {config}")


def remove_records(admin: AdminClient, topic: str, first: Mapping[int, int]) -> None:
    """Remove the records before these offsets (by partition; -1 means all), and return when none is shown.

    A policy that allows it is shown before it holds: until then the broker is asked again.
    """
    places = [TopicPartition(topic, partition, offset) for partition, offset in first.items()]
    begin: dict[int, int] = {}

    def removed() -> bool:
        found = {
            place.partition: _begin(deletion) for place, deletion in admin.delete_records(places).items()
        }
        begin.update({partition: offset for partition, offset in found.items() if offset is not None})
        return None not in found.values()

    _until(removed, f"the broker to remove records of {topic}")
    _until(lambda: begins(admin, topic, first) == begin, f"topic {topic} to begin at {begin}")


def grant(admin: AdminClient, rights: Sequence[AclBinding]) -> None:
    """Grant rights, and return when the broker shows them."""
    for granted in admin.create_acls(list(rights)).values():
        granted.result(_SECONDS)
    _until(lambda: all(_is_granted(admin, right) for right in rights), f"the broker to grant {rights}")


def _begin(deletion: Future[DeletedRecords]) -> int | None:
    """Return where a partition begins once records were removed; None where its policy forbids that."""
    try:
        return deletion.result(_SECONDS).low_watermark
    except KafkaException as error:
        if error.args[0].code() != KafkaError.POLICY_VIOLATION:
            raise
        error.__traceback__ = None  # see answering()
        return None


def _placed(ask: Callable[[], Future[None]]) -> None:
    """Have replicas placed; ask again while the only broker is fenced, as it is right after a freeze."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            return ask().result(_SECONDS)
        except KafkaException as error:
            if not is_fenced(error) or time.monotonic() > deadline:
                raise
            error.__traceback__ = None  # see answering()
        time.sleep(_POLL_SECONDS)


def _is_granted(admin: AdminClient, right: AclBinding) -> bool:
    asked = AclBindingFilter(
        right.restype, right.name, right.resource_pattern_type, right.principal, right.host,
        right.operation, right.permission_type,
    )  # fmt: skip
    return bool(admin.describe_acls(asked).result(_SECONDS))


def names(admin: AdminClient) -> set[str]:
    """Return the names of all topics but the broker's own, which it makes when it first needs them."""
    return {name for name in admin.list_topics(timeout=60).topics if not name.startswith("__")}


def options(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return the options of a topic as the broker shows them."""
    resource = named(topic)
    shown = admin.describe_configs([resource])[resource].result(_SECONDS)
    return {name: entry.value for name, entry in shown.items()}


def named(topic: str) -> ConfigResource:
    """Return what stands for a topic in questions about options."""
    return ConfigResource(ConfigResource.Type.TOPIC, topic)


def answering(admin: AdminClient, topic: str) -> int:
    """Return how many partitions of a topic there are; 0 while one of them does not say where it ends."""
    # All topics are asked for: some brokers make a topic that is asked for by its name.
    listed = admin.list_topics(timeout=60).topics
    shown = listed[topic].partitions if topic in listed else {}
    try:
        begins(admin, topic, shown)
    except KafkaException as error:  # no leader yet, or one that has not heard of it
        # It holds the question, which holds the error: a circle with the client in it.
        error.__traceback__ = None
        return 0
    return len(shown)


def begins(admin: AdminClient, topic: str, partitions: Mapping[int, object]) -> dict[int, int]:
    """Return where partitions of a topic begin."""
    asked = {TopicPartition(topic, partition): OffsetSpec.earliest() for partition in partitions}
    found = admin.list_offsets(asked, request_timeout=60) if asked else {}
    return {place.partition: future.result(_SECONDS).offset for place, future in found.items()}


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not _is_answered(holds):
        assert time.monotonic() < deadline, f"waited {_SECONDS:.0f} s for {what}"
        time.sleep(_POLL_SECONDS)


def _is_answered(holds: Callable[[], bool]) -> bool:
    """Return whether it holds; not yet, where a busy broker was silent or a question was dropped."""
    try:
        return holds()
    except KafkaException as error:
        if error.args[0].code() not in _SILENT:
            raise
        error.__traceback__ = None  # see answering()
        return False
