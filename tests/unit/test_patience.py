"""A running driver waits for a service that is silent, says so, and gives up in the end."""

from __future__ import annotations

import re
import threading
import time
from datetime import timedelta

import pytest

from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.streaming import patience as subject
from airflow_provider_sinks.streaming.patience import Patience

SILENT = UnavailableError("no answer", "Connection reset.", "Check the brokers.")
_SILENT_FOR = r"Kafka, silent for \d+ s"


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
    assert re.fullmatch(_SILENT_FOR, asked[-1])
    assert patience.waits_for == ""


def test_a_silence_longer_than_the_bound_ends_it_and_says_how_long_it_was() -> None:
    patience = Patience(timedelta(seconds=0.1))

    def question() -> None:
        raise SILENT

    with pytest.raises(UnavailableError) as raised:
        patience.ask("Kafka", question)

    assert raised.value.primary == "no answer"
    said = r"Connection reset\. The sink has waited for Kafka for \d+ s \(`patience`\)\."
    assert re.fullmatch(said, raised.value.detail)
    assert raised.value.hint == "Check the brokers."


def test_a_question_that_never_comes_back_is_seen_from_outside() -> None:
    patience = Patience(timedelta(seconds=2))
    seen: list[UnavailableError | None] = []

    def question() -> None:
        seen.append(patience.exhausted)
        time.sleep(2.1)
        seen.append(patience.exhausted)

    patience.attempt("Kafka", question, "the guard")

    before, behind = seen
    assert before is None
    assert behind is not None
    assert (behind.primary, bool(behind.hint)) == ("Kafka does not answer", True)


@pytest.mark.timeout(120)
def test_an_answer_to_one_question_ends_no_silence_to_another() -> None:
    """Brokers that describe topics may yet take no commit."""
    patience, over = Patience(timedelta(seconds=0.3)), threading.Event()

    def silent() -> None:
        raise SILENT

    def guard() -> None:
        while not over.wait(0.01):
            patience.attempt("Kafka", lambda: None, "the guard")

    watch = threading.Thread(target=guard)
    watch.start()
    try:
        with pytest.raises(UnavailableError, match="no answer"):
            patience.ask("Kafka", silent)
        assert re.fullmatch(_SILENT_FOR, patience.waits_for)
    finally:
        over.set()
        watch.join()


def test_any_other_error_is_no_silence() -> None:
    patience = Patience(timedelta(minutes=1))

    def question() -> None:
        raise RefusedError("another topic")

    with pytest.raises(RefusedError):
        patience.ask("Kafka", question)
    assert patience.exhausted is None
    assert patience.waits_for == ""
