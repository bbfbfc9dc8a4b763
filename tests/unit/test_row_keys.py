"""Rows without a key, while somebody makes their topic a compacted one, which takes none, or hides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka import row_keys, row_limits, surely_taken
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.dead_letters import dead_letter
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.run import KafkaTopics
from airflow_provider_sinks.connectors.kafka.surely_taken import KnownLimits
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass
from airflow_provider_sinks.core.errors import ConfigurationError, UnavailableError
from airflow_provider_sinks.core.spec.sink import SinkSpec

_OPTIONS = KafkaOptions.from_connection_extra({"bootstrap.servers": "b:1"}, "k")
_TOPICS = KafkaTopics("data", "progress", "dead", "in")
_INVALID = [KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD]


class Topic:
    """What can be seen of all topics, as somebody changes it."""

    def __init__(self) -> None:
        self.is_compacted: bool | None = True
        self.asked = 0

    def limit(self, name: str = "data") -> TopicLimit:
        return TopicLimit(name, 1_000, 1_000, "none", self.is_compacted)

    def read(self, _: KafkaOptions, names: Sequence[str], __: str) -> dict[str, TopicLimit]:
        self.asked += 1
        return {name: self.limit(name) for name in names}


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    found = Topic()
    monkeypatch.setattr(row_limits, "read_limits", found.read)
    monkeypatch.setattr(row_keys, "_FRESH_SECONDS", -1.0)
    return found


def _limits(topics: KafkaTopics = _TOPICS) -> RowLimits:
    return RowLimits(_OPTIONS, "s", topics, "none", RowTimes(_OPTIONS, "s", topics))


def _rows(*keys: bytes | None, errors: Sequence[str | None] = ()) -> pa.RecordBatch:
    told = pa.array(errors or [None] * len(keys), pa.string())
    return pa.RecordBatch.from_pydict({KEY: pa.array(keys, pa.binary()), columns.ERROR: told})


@pytest.mark.usefixtures("topic")
def test_a_compacted_topic_takes_no_row_without_a_key_and_those_are_set_aside() -> None:
    rows = _rows(None, b"a", None, b"", None, errors=["cut", None, None, None, "no JSON"]).slice(1)

    assert _limits().keys.refused(rows) == {
        1: 'Topic "data" is compacted, and takes no record without a key.'
    }


@pytest.mark.usefixtures("topic")
def test_without_dead_letters_the_row_is_named_with_the_ways_on() -> None:
    limits = _limits(KafkaTopics("data", "progress", None, "in"))

    with pytest.raises(
        RejectedRowError, match='topic "data" takes no row of sink "s" without a key'
    ) as raised:
        limits.keys.refused(_rows(b"a", None, None))

    told = raised.value
    assert (told.row, told.detail) == (1, "It has no key, and cleanup.policy of the topic has compact.")
    for way in ("target.kafka.key", "`where`", "`dead_letter: {topic: ...}`", "cleanup.policy=delete"):
        assert way in told.hint


@pytest.mark.parametrize(
    ("is_compacted", "rows"), [(True, _rows(b"a", b"")), (False, _rows(b"a", None))], ids=["keys", "no keys"]
)
def test_rows_that_a_topic_takes_cost_no_question(
    topic: Topic, rows: pa.RecordBatch, *, is_compacted: bool
) -> None:
    topic.is_compacted = is_compacted
    limits = _limits()

    assert limits.keys.refused(rows) == {}
    assert topic.asked == 1


def test_a_topic_that_is_compacted_no_more_takes_rows_without_a_key(topic: Topic) -> None:
    limits = _limits()
    topic.is_compacted = False

    assert limits.keys.refused(_rows(None)) == {}


@pytest.mark.parametrize("code", _INVALID)
@pytest.mark.parametrize("was_compacted", [False, None], ids=["was not", "was hidden"])
def test_a_topic_that_was_made_a_compacted_one_is_judged_anew_by_another_writer(
    topic: Topic, code: int, *, was_compacted: bool | None
) -> None:
    topic.is_compacted = was_compacted
    limits = _limits()
    assert limits.keys.refused(_rows(None)) == {}
    topic.is_compacted = True
    limits.note_undelivered(KafkaError(code), "data", 3)

    with pytest.raises(UnavailableError, match=r'cleanup.policy of topic "data" has changed'):
        limits.demand_delivered()

    assert list(_limits().keys.refused(_rows(None))) == [0]


@pytest.mark.parametrize(("refusing", "what"), [("data", "row"), ("dead", "dead letter")])
def test_a_refusal_by_a_hidden_policy_is_final_and_names_the_right_that_is_missing(
    topic: Topic, refusing: str, what: str
) -> None:
    topic.is_compacted = None
    limits = _limits()
    assert limits.keys.refused(_rows(None)) == {}
    limits.note_undelivered(KafkaError(KafkaError.INVALID_RECORD), refusing, 3)

    with pytest.raises(RejectedRowError, match=f'"{refusing}" takes no {what} of sink "s" without') as raised:
        limits.demand_delivered()

    assert f"--operation DescribeConfigs --topic {refusing}" in raised.value.hint


@pytest.mark.parametrize("is_compacted", [False, None], ids=["not compacted", "hidden, and all have keys"])
def test_a_record_that_is_invalid_for_another_reason_is_not_told_as_one_without_a_key(
    topic: Topic, *, is_compacted: bool | None
) -> None:
    topic.is_compacted = is_compacted
    limits = _limits()
    limits.keys.refused(_rows(b"a" if is_compacted is None else None))
    limits.note_undelivered(KafkaError(KafkaError.INVALID_RECORD), "data", 3)

    limits.demand_delivered()


def test_a_letter_without_a_key_for_a_compacted_topic_is_final() -> None:
    named = {KEY: None, VALUE: b"{", **dict.fromkeys((*columns.COORDINATES, *columns.RAW))}
    row = pa.RecordBatch.from_pylist([{**named, columns.RAW_VALUE: b"{"}])
    limit = TopicLimit("dead", 1_000, 1_000, "none", is_compacted=True)

    with pytest.raises(
        RejectedRowError, match='"dead" takes no dead letter of sink "s" without a key'
    ) as raised:
        dead_letter(row, 0, ("no JSON", ErrorClass.PARSE), Circumstances("s", "in"), limit)

    assert "Why it is: no JSON" in raised.value.detail


def test_no_spec_has_its_dead_letters_compacted() -> None:
    given = {
        "name": "s",
        "source": "k/in",
        "target": "k/out",
        "dead_letter": {"topic": "dead", "config": {"cleanup.policy": "compact,delete"}},
    }

    with pytest.raises(ConfigurationError, match=r"dead_letter.config.cleanup.policy: is compact,delete: of"):
        SinkSpec.parse(given)


def test_the_driver_keeps_records_without_a_key_unless_it_knows_that_they_are_taken(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownLimits(has_time=False)
    factory: Any = topic
    topic.is_compacted = False
    assert known.surely_taken(factory).without_key
    topic.is_compacted = None
    assert known.surely_taken(factory).without_key  # asked a moment ago

    monkeypatch.setattr(surely_taken, "_REMEMBERED_SECONDS", -1.0)

    assert not known.surely_taken(factory).without_key
