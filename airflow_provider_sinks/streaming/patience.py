"""How long a running driver waits for a service that is silent, and what it says meanwhile.

A start has no patience: who starts a sink wants to know at once what is away. A driver that runs has: it
holds the sink's writers and its place in the source, and a broker that is silent for a minute costs it a
minute. Only when a service was silent for the whole bound does it end, and Airflow's retry takes over:
:mod:`.core.retries` says what is tried again, and by whom.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.retries import RETRIES, Trouble

T = TypeVar("T")

_RETRY = RETRIES[Trouble.SILENCE].question
_AGAIN_SECONDS = _RETRY.pause_seconds
_WORTH_SAYING_SECONDS = 3.0
_HINT = "See that it is up, and that nothing holds it still: it has taken the question and said nothing."


@dataclass(frozen=True)
class _Silence:
    """A question without an answer.

    :param since: when it was asked first.
    :param error: what came instead of the newest answer, or nothing yet.
    """

    service: str
    since: float
    error: UnavailableError | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Patience:
    """The questions of one driver that wait for an answer. Safe for threads.

    A question is over by its own answer alone: a service may answer one and be silent to another, as brokers
    are that describe topics and take no commit.

    :param bound: how long one may wait.
    """

    def __init__(self, bound: timedelta) -> None:
        self.bound_seconds = bound.total_seconds()
        self._lock = threading.Lock()
        self._open: dict[object, _Silence] = {}

    @property
    def waits_for(self) -> str:
        """What the driver waits for longest, such as ``Postgres, silent for 12 s``; empty if nothing."""
        longest = self._longest()
        if longest is None or longest.seconds < _WORTH_SAYING_SECONDS:
            return ""
        return f"{longest.service}, silent for {longest.seconds:.0f} s"

    @property
    def exhausted(self) -> UnavailableError | None:
        """The error to end with once a question has waited for longer than the bound."""
        longest = self._longest()
        if longest is None:
            return None
        goes_on = _RETRY.goes_on(seconds=longest.seconds, patience_seconds=self.bound_seconds)
        return None if goes_on else self._gave_up(longest)

    def attempt(self, service: str, question: Callable[[], T], asker: object) -> T:
        """Ask once.

        :param service: what is asked, for messages.
        :param asker: who asks the same again until there is an answer, and nothing else meanwhile.
        :raises UnavailableError: no answer.
        """
        with self._lock:
            self._open.setdefault(asker, _Silence(service, time.monotonic()))
        try:
            answer = question()
        except UnavailableError as error:
            with self._lock:
                self._open[asker] = _Silence(service, self._open[asker].since, error)
            raise
        except BaseException:
            self._forget(asker)
            raise
        self._forget(asker)
        return answer

    def ask(self, service: str, question: Callable[[], T]) -> T:
        """Ask until there is an answer.

        :raises UnavailableError: there was none for longer than the bound.
        """
        asker = object()
        while True:
            try:
                return self.attempt(service, question, asker)
            except UnavailableError:
                if (gave_up := self.exhausted) is not None:
                    raise gave_up from None
            time.sleep(_AGAIN_SECONDS)

    def _longest(self) -> _Silence | None:
        with self._lock:
            return min(self._open.values(), key=lambda silence: silence.since, default=None)

    def _forget(self, asker: object) -> None:
        with self._lock:
            self._open.pop(asker, None)

    def _gave_up(self, silence: _Silence) -> UnavailableError:
        error = silence.error or UnavailableError(f"{silence.service} does not answer", hint=_HINT)
        waited = f"The sink has waited for {silence.service} for {silence.seconds:.0f} s (`patience`)."
        return UnavailableError(error.primary, f"{error.detail} {waited}".strip(), error.hint)
