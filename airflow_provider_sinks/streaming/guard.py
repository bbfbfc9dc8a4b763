"""Watches what an epoch cannot see: whether topics were replaced, and whether a newer start took over.

A topic that is deleted under a transactional producer hangs its flush, and one that is made again under the
same name takes a commit as if nothing had happened. So the guard looks before an epoch, after its commits,
and beside it from a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role
from airflow_provider_sinks.core.errors import (
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
)
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.source_identity import demand_same

FRESH_SECONDS = 2.0
"""Before an epoch, a look that is younger than this is not repeated."""
WATCH_SECONDS = 3.0
"""How often the thread looks."""


class Guard:
    """The guard of one run.

    :param expected: the identities that were announced.
    :param look: returns the facts of every topic of the sink, by role.
    :param demand_in_force: raises :class:`FencedError` when a newer start has announced itself.
    :param patience: for brokers that do not answer.
    :param service: who is asked, for messages.
    """

    def __init__(
        self,
        expected: Identities,
        look: Callable[[], Mapping[Role, ResourceFacts]],
        demand_in_force: Callable[[], None],
        patience: Patience,
        service: str,
    ) -> None:
        self.identities = expected
        self.failure: SinkError | None = None
        self._look = look
        self._demand_in_force = demand_in_force
        self._patience = patience
        self._service = service
        self._looked_at = 0.0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)

    def start(self) -> None:
        """Look from now on every few seconds, until :meth:`close`."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` if a newer start has announced itself, and is to be left alone."""
        self._demand_in_force()

    def check_before(self) -> Identities:
        """Look, unless that was done just now; return the identities as they are. Called before an epoch."""
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            return self.identities
        return self.check()

    def check(self) -> Identities:
        """Look now, patiently; return the identities as they are.

        :raises RefusedError: when a topic is missing or is another one than announced.
        :raises UnavailableError: when a topic could not be seen for too long.
        """
        return self._patience.ask(self._service, self._compare)

    def _compare(self) -> Identities:
        started = time.monotonic()
        with self._lock:
            facts = self._look()
            for role, was in _by_role(self.identities):
                demand_same(role, was, facts[role])
            dead_letter = facts.get(Role.DEAD_LETTER)
            self.identities = Identities(
                facts[Role.SOURCE].identity,
                facts[Role.DATA].identity,
                facts[Role.PROGRESS].identity,
                dead_letter.identity if dead_letter else None,
            )
            self._looked_at = started
            return self.identities

    def _watch(self) -> None:
        while not self._closing.wait(WATCH_SECONDS):
            try:
                self._patience.attempt(self._service, self._compare, self)
                self._demand_in_force()
            except (RefusedError, FencedError, JobFailedError) as error:
                self.failure = error
                return
            except Exception:  # noqa: BLE001, S112  a look that failed: the check after the epoch insists
                continue


def _by_role(identities: Identities) -> Iterator[tuple[Role, Identity]]:
    yield Role.SOURCE, identities.source
    yield Role.DATA, identities.data
    yield Role.PROGRESS, identities.progress
    if identities.dead_letter is not None:
        yield Role.DEAD_LETTER, identities.dead_letter
