"""The administrator of the tests waits for a broker that serves a change later than it has answered."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator
from tests.support import TopicFactory

LATE_LOOKS = 3


class LateAdmin:
    """A client of a real broker that shows what it saw before a change for some looks more."""

    def __init__(self, broker: KafkaBroker, method: str) -> None:
        self._admin = AdminClient(broker.client_config())
        self._method = method
        self._before: Any = None
        self.late = 0

    def __getattr__(self, name: str) -> Any:
        return self._look if name == self._method else getattr(self._admin, name)

    def remember(self, *arguments: Any) -> Any:
        self._before = getattr(self._admin, self._method)(*arguments)
        return self._before

    def _look(self, *arguments: Any, **named: Any) -> Any:
        if self.late < LATE_LOOKS:
            self.late += 1
            return self._before
        return getattr(self._admin, self._method)(*arguments, **named)


@pytest.fixture
def late(broker: KafkaBroker) -> Any:
    """A client that lists topics late."""
    return LateAdmin(broker, "list_topics")


def test_a_topic_is_deleted_when_nobody_is_shown_it_any_more(late: Any, topic: TopicFactory) -> None:
    name = topic("gone")
    late.remember()

    administrator.delete_topic(late, name)

    assert late.late == LATE_LOOKS
    assert name not in administrator.names(late)


def test_a_topic_is_made_when_each_partition_answers(late: Any, topic: TopicFactory) -> None:
    late.remember()
    name = f"{topic('beside')}-made"

    administrator.create_topic(late, name, 3)
    administrator.grow_topic(late, name, 5)

    assert late.late == LATE_LOOKS
    assert administrator.begins(late, name, dict.fromkeys(range(5))) == dict.fromkeys(range(5), 0)


def test_an_option_is_changed_when_the_broker_shows_it(broker: KafkaBroker, topic: TopicFactory) -> None:
    name = topic("policy")
    late: Any = LateAdmin(broker, "describe_configs")
    for asked in late.remember([administrator.named(name)]).values():
        asked.result(30)  # an answer that is still under way could be of after the change

    administrator.configure_topic(late, name, {"cleanup.policy": "compact"})

    assert late.late == LATE_LOOKS
    assert administrator.options(late, name)["cleanup.policy"] == "compact"


def test_records_are_removed_when_the_policy_that_allows_it_holds(
    broker: KafkaBroker, topic: TopicFactory
) -> None:
    name = topic("removed", 2, **{"cleanup.policy": "compact"})
    producer = Producer(broker.client_config())
    for partition in (0, 0, 0, 1):
        producer.produce(name, b"value", b"key", partition)
    assert producer.flush(60) == 0
    late: Any = LateAdmin(broker, "delete_records")
    (forbidden,) = late.remember([TopicPartition(name, 0, -1)]).values()
    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        forbidden.result(30)

    administrator.configure_topic(late, name, {"cleanup.policy": "compact,delete"})
    administrator.remove_records(late, name, {0: 2, 1: -1})

    assert late.late == LATE_LOOKS
    assert administrator.begins(late, name, {0: 2, 1: -1}) == {0: 2, 1: 1}
