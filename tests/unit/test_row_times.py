"""Times of messages that a broker refused: what is asked anew, learnt, and told; and the first cause."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka import row_limits, row_times, transaction
from airflow_provider_sinks.connectors.kafka.columns import TIME
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.run import KafkaRun, KafkaTopics
from airflow_provider_sinks.connectors.kafka.surely_taken import KnownLimits
from airflow_provider_sinks.connectors.kafka.time_limits import TimeLimits, time_limits
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.errors import UnavailableError

_HOUR_MS = 3_600_000
_AFTER = {"message.timestamp.after.max.ms": str(_HOUR_MS)}
_OPTIONS = KafkaOptions.from_connection_extra({"bootstrap.servers": "b:1"}, "k")
_TOPICS = KafkaTopics("data", "progress", "dead", "in")


def _now_ms() -> int:
    return int(time.time() * 1000)


def _rows(*times: int | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({TIME: pa.array(times, pa.int64())})


class Topic:
    """Its limits, as somebody changes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config: Mapping[str, str] = _AFTER
        self.is_away = False
        monkeypatch.setattr(row_times, "read_time_limits", lambda _, name: self.limits(name))
        monkeypatch.setattr(row_limits, "read_limits", lambda _, names, __: {n: _size(n) for n in names})

    def limits(self, name: str) -> TimeLimits:
        return time_limits(name, self.config)

    def limit(self) -> TopicLimit:
        if self.is_away:
            raise UnavailableError("no broker answers")
        return _size("data")

    def time_limits(self) -> TimeLimits:
        if self.is_away:
            raise UnavailableError("no broker answers")
        return self.limits("data")


def _size(name: str) -> TopicLimit:
    return TopicLimit(name, None, 1_000, "none")


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(monkeypatch)


def _told(times: RowTimes, *codes: int, cause: int | None = None) -> None:
    """Tell of messages that were refused, and demand that none was."""
    sizes = RowLimits(_OPTIONS, "s", _TOPICS, "none", times)
    for code in codes:
        sizes.note_undelivered(KafkaError(code), "data", 3)
    sizes.demand_delivered(KafkaError(cause) if cause is not None else None)


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        ([KafkaError.INVALID_TIMESTAMP], None),
        ([KafkaError._INVALID_DIFFERENT_RECORD, KafkaError.INVALID_RECORD], KafkaError.INVALID_TIMESTAMP),
        ([KafkaError._PURGE_QUEUE, KafkaError.INVALID_TIMESTAMP], None),
        ([KafkaError._PURGE_INFLIGHT, KafkaError.INVALID_TIMESTAMP], None),
    ],
    ids=["one", "several", "one behind it is told of first", "one on its way is told of first"],
)
@pytest.mark.parametrize(
    ("config", "said"),
    [(_AFTER, "refused a timestamp that its limits allow"), ({**_AFTER, "x": "y"}, "limits allow"),
     ({"message.timestamp.after.max.ms": "60000"}, "have changed")],
    ids=["clocks differ", "another setting", "lowered"],
)  # fmt: skip
def test_a_time_that_is_refused_by_limits_that_can_be_read_is_tried_again(
    limits: Topic, codes: Sequence[int], cause: int | None, config: dict[str, str], said: str
) -> None:
    times = RowTimes(_OPTIONS, "s", _TOPICS)
    assert times.refused(_rows(_now_ms() + _HOUR_MS // 2)) == {}
    limits.config = config

    with pytest.raises(UnavailableError, match=said):
        _told(times, *codes, cause=cause)


def test_a_writer_behind_a_limit_that_was_lowered_sets_the_row_aside(limits: Topic) -> None:
    limits.config = {"message.timestamp.after.max.ms": "60000"}

    (why,) = RowTimes(_OPTIONS, "s", _TOPICS).refused(_rows(_now_ms() + _HOUR_MS // 2)).values()

    assert "message.timestamp.after.max.ms of the topic is 60,000." in why


def test_a_time_that_is_refused_by_hidden_limits_names_the_right_that_is_missing(limits: Topic) -> None:
    limits.config = {}
    times = RowTimes(_OPTIONS, "s", _TOPICS)
    assert times.refused(_rows(2**42)) == {}

    with pytest.raises(RejectedRowError) as raised:
        _told(times, KafkaError._INVALID_DIFFERENT_RECORD, KafkaError.INVALID_RECORD)

    assert "may not read the limits of the topic" in raised.value.detail
    assert "--operation DescribeConfigs --topic data" in raised.value.hint


def test_rows_without_times_of_their_own_are_tried_again_until_clocks_agree(limits: Topic) -> None:
    limits.config = {}

    with pytest.raises(UnavailableError, match="limits allow"):
        _told(RowTimes(_OPTIONS, "s", _TOPICS), KafkaError.INVALID_TIMESTAMP)


def test_the_broker_is_asked_about_few_rows_and_all_beyond_are_set_aside(limits: Topic) -> None:
    limits.config = {}
    times, now = RowTimes(_OPTIONS, "s", _TOPICS), _now_ms()
    ahead = [now + 60_000 * minutes for minutes in range(1, 1_000)]
    batches = [_rows(None, *ahead[::2]), _rows(*ahead[1::2], None, now - 5_000), _rows()]
    times.refused(batches[0])
    asked: list[int] = []

    def is_taken(row: pa.RecordBatch) -> bool:
        (at_ms,) = row.column(TIME).to_pylist()
        asked.append(at_ms)
        return bool(at_ms <= now + _HOUR_MS)

    assert times.learn(batches, is_taken)

    assert [len(times.refused(rows)) for rows in batches] == [470, 469, 0]
    assert len(asked) < 15
    assert not times.learn([_rows(*[t for t in ahead if t <= now + _HOUR_MS])], is_taken)


def test_a_broker_whose_clock_comes_near_while_it_is_asked_has_refused_the_furthest(limits: Topic) -> None:
    limits.config = {}
    times, rows = RowTimes(_OPTIONS, "s", _TOPICS), _rows(2**42, 2**42 + 1)
    times.refused(rows)
    answers = iter([False, True, True, True])

    assert times.learn([rows], lambda _: next(answers))

    assert list(times.refused(rows)) == [1]


def test_old_times_are_learnt_by_themselves(limits: Topic) -> None:
    limits.config = {}
    times, now = RowTimes(_OPTIONS, "s", _TOPICS), _now_ms()
    rows = _rows(1_000, now - _HOUR_MS, now - 5_000, 2**42)
    times.refused(rows)

    assert times.learn([rows], lambda row: row.column(TIME)[0].as_py() >= now - 60_000)

    refused = times.refused(rows)
    assert list(refused) == [0, 1]
    assert "It is 1970-01-01T00:00:01.000+00:00; the broker refused such a time" in refused[0]


def test_what_was_learnt_is_asked_anew_after_a_while(limits: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.config = {}
    times, rows = RowTimes(_OPTIONS, "s", _TOPICS), _rows(2**42)
    times.refused(rows)
    times.learn([rows], lambda _: False)
    times.go_on()
    assert list(times.refused(rows)) == [0]

    monkeypatch.setattr(row_times, "_REMEMBERED_SECONDS", 0.0)
    times.go_on()

    assert times.refused(rows) == {}


def test_the_driver_goes_by_the_limits_of_now_and_by_those_it_knows_while_nobody_answers(
    limits: Topic,
) -> None:
    known, far = KnownLimits(has_time=True), _now_ms() + _HOUR_MS // 2
    factory: Any = limits
    before = known.surely_taken(factory)
    limits.config = {"message.timestamp.after.max.ms": "60000"}

    lowered = known.surely_taken(factory)
    limits.is_away = True

    assert before.times_ms[1] >= far - 600_000 > lowered.times_ms[1]
    assert known.surely_taken(factory) == lowered
    with pytest.raises(UnavailableError):
        KnownLimits(has_time=True).surely_taken(factory)


def test_of_hidden_limits_nothing_is_taken_for_sure_but_times_of_now() -> None:
    now = _now_ms()

    first, last = time_limits("t", {}).taken_for_long_ms(now)

    assert now - 3 * _HOUR_MS < first < now <= last < now + _HOUR_MS


class Refusing:
    """A producer whose broker has refused a message, which it has not told yet."""

    def __init__(self, on_undelivered: Any, code: int) -> None:
        self._told = on_undelivered
        self._code = code

    def poll(self, timeout: float) -> int:
        if not timeout:
            self._told(KafkaError(self._code), "data", 3)
        return 0

    def list_topics(self, *, timeout: float) -> None:
        del timeout


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, RejectedRowError, "The broker refused a record of 3 bytes"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, UnavailableError, "Topic authorization failed"),
    ],
    ids=["size", "right"],
)
@pytest.mark.usefixtures("limits")
def test_a_refusal_that_was_not_told_yet_is_no_fence(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception], said: str
) -> None:
    """Whoever produces behind it hears of a state alone."""
    monkeypatch.setattr(transaction, "producer_config", lambda *_: {})
    monkeypatch.setattr(transaction, "demand_unrivalled", lambda _: None)
    monkeypatch.setattr(transaction, "_SUCCESSOR_WAIT_SECONDS", 0.0)
    run = KafkaRun("s", "run", 1, "sinks", _TOPICS, timedelta(seconds=9), _OPTIONS)
    sizes = RowLimits(_OPTIONS, "s", _TOPICS, "none", RowTimes(_OPTIONS, "s", _TOPICS))
    kind_of: Any = lambda _, __, on_undelivered: Refusing(on_undelivered, code)  # noqa: E731

    found = Transaction(run, "p0", sizes, kind=kind_of)

    with pytest.raises(kind, match=said):
        raise found.translated(KafkaException(KafkaError(KafkaError._STATE)), "produce_batch")


class Purging:
    """A producer that tells first of a message behind the refused one, and of that by the next look."""

    def __init__(self, on_undelivered: Any) -> None:
        self._told = on_undelivered
        self._codes = [KafkaError._PURGE_QUEUE, KafkaError.INVALID_TIMESTAMP]

    def flush(self, timeout: float) -> int:
        del timeout
        if self._codes:
            self._told(KafkaError(self._codes.pop(0)), "data", 3)
        return len(self._codes)

    def poll(self, timeout: float) -> int:
        del timeout
        return 0

    def list_topics(self, *, timeout: float) -> None:
        del timeout


@pytest.mark.usefixtures("limits")
def test_a_flush_does_not_end_before_the_cause_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "producer_config", lambda *_: {})
    run = KafkaRun("s", "run", 1, "sinks", _TOPICS, timedelta(seconds=9), _OPTIONS)
    sizes = RowLimits(_OPTIONS, "s", _TOPICS, "none", RowTimes(_OPTIONS, "s", _TOPICS))
    kind: Any = lambda _, __, on_undelivered: Purging(on_undelivered)  # noqa: E731

    Transaction(run, "p0", sizes, kind=kind).flush()

    assert sizes.first_failure is not None
    assert sizes.first_failure.code() == KafkaError.INVALID_TIMESTAMP
