"""A running driver waits for a service that is silent, says so, and gives up in the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.streaming import patience as subject
from airflow_provider_sinks.streaming.patience import Patience

SILENT = UnavailableError("no answer", "Connection reset.", "Check the brokers.")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(subject, "_WORTH_SAYING_SECONDS", 0.05)


def test_a_question_is_asked_until_it_is_answered() -> None:
    patience, asked = Patience(timedelta(minutes=1)), []

    def question() -> str:
        asked.append(patience.waits_for)
        if len(asked) < 20:
            raise SILENT
        return "here"

    assert patience.ask("Kafka", question) == "here"
    assert asked[0] == ""
    assert asked[-1] == "Kafka, silent for 0 s"
    assert patience.waits_for == ""


def test_a_silence_longer_than_the_bound_ends_it_and_says_how_long_it_was() -> None:
    patience = Patience(timedelta(seconds=0.1))

    def question() -> None:
        raise SILENT

    with pytest.raises(UnavailableError) as raised:
        patience.ask("Kafka", question)

    assert raised.value.primary == "no answer"
    assert raised.value.detail == "Connection reset. The sink has waited for Kafka for 0 s (`patience`)."
    assert raised.value.hint == "Check the brokers."


def test_a_question_that_never_comes_back_is_seen_from_outside() -> None:
    patience = Patience(timedelta(seconds=0.05))

    def question() -> None:
        assert patience.exhausted is None
        time.sleep(0.1)
        assert patience.exhausted is not None

    patience.attempt("Kafka", question, asker=question)


@pytest.fixture
def somebody_is_answered() -> Iterator[Patience]:
    """A patience of 0.3 s, while a thread beside asks the same service and is answered again and again."""
    patience, ended = Patience(timedelta(seconds=0.3)), threading.Event()

    def answered() -> None:
        while not ended.wait(0.02):
            patience.attempt("Kafka", lambda: "here", asker=ended)

    beside = threading.Thread(target=answered)
    beside.start()
    yield patience
    ended.set()
    beside.join()


def test_a_silence_is_not_ended_by_an_answer_to_somebody_else(somebody_is_answered: Patience) -> None:
    begun, told = time.monotonic(), set[str]()

    def question() -> None:
        told.add(somebody_is_answered.waits_for)
        if time.monotonic() - begun < 3:
            raise SILENT

    with pytest.raises(UnavailableError, match="no answer"):
        somebody_is_answered.ask("Kafka", question)

    assert told == {"", "Kafka, silent for 0 s"}
    assert time.monotonic() - begun < 1


def test_a_silence_that_others_talk_over_is_seen_from_outside(somebody_is_answered: Patience) -> None:
    def question() -> None:
        time.sleep(0.5)
        assert somebody_is_answered.exhausted is not None

    somebody_is_answered.ask("Kafka", question)


def test_looks_of_one_asker_that_fail_are_one_silence() -> None:
    patience = Patience(timedelta(seconds=0.05))

    def question() -> None:
        raise SILENT

    for _ in range(2):
        with pytest.raises(UnavailableError):
            patience.attempt("Kafka", question, asker="the guard")
        time.sleep(0.03)

    assert patience.exhausted is not None
    patience.attempt("Kafka", lambda: "here", asker="the guard")
    assert patience.exhausted is None


def test_any_other_error_is_no_silence() -> None:
    patience = Patience(timedelta(minutes=1))

    def question() -> None:
        raise RefusedError("another topic")

    with pytest.raises(RefusedError):
        patience.ask("Kafka", question)
    assert patience.exhausted is None
    assert patience.waits_for == ""
