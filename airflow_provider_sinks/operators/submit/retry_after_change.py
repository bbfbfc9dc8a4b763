"""A launch that follows a changed connection and cannot run is tried again: the connection may change back.

Without a change such a failure needs a person at once: wrong credentials stay wrong. Right after one, the
change itself is the likely cause. Whoever made it may take it back, as ``AlterConnectionRestartOperator``
does, and then nobody should have to start the sink by hand.

Only errors that come from a connection that changed are tried again, and only those that the table of
:mod:`.core.retries` names, for as long as it says. A refusal never is: a person must choose a way on,
whatever changed. That a change is not settled yet is noted in the task's state store, so that retries know of
it. A launch that came to run settles it, whatever ends it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.retries import RETRIED_FOR, RETRIES
from airflow_provider_sinks.metadata.store import Store

_KEY = "unsettled_connections"


@dataclass(frozen=True)
class Change:
    """Connections that changed under a sink which has not run since.

    :param at: when the newest of them was noticed.
    """

    connections: tuple[str, ...]
    at: datetime

    def excuses(self, error: SinkError, now: datetime) -> bool:
        """Return whether an error that a retry does not mend may go away when the change is taken back."""
        retry, since = RETRIES[error.trouble].after_change, now - self.at
        is_of_it = bool(set(error.connections) & set(self.connections))
        return is_of_it and retry.goes_on(seconds=since.total_seconds())

    def to_mapping(self) -> dict[str, Any]:
        """Return the JSON object that is stored."""
        return {"connections": list(self.connections), "at": self.at.isoformat()}

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Change:
        """Read back what :meth:`to_mapping` returned."""
        return cls(tuple(data["connections"]), datetime.fromisoformat(data["at"]))


class RetryAfterChange:
    """What a task remembers of connections that changed under it.

    :param store: the state store of the task.
    :param changed: the connections for whose sake the next launch is made.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.changed: Sequence[str] = ()

    def begin(self, changed: Sequence[str]) -> None:
        """Note for whose sake the next launch is made."""
        self.changed = changed
        if changed:
            before = self._unsettled()
            known = before.connections if before else ()
            change = Change(tuple(dict.fromkeys((*known, *changed))), datetime.now(UTC))
            self._store.set(_KEY, change.to_mapping())

    def end(self, error: SinkError, status: SinkStatus | None) -> SinkError:
        """Return the error that a launch ends with: one that a retry may mend, while a change is not settled.

        :param status: the newest status of the launch; it has a ``run`` if the sink came to run.
        """
        change = self._unsettled()
        if change is not None and status is not None and status.run:
            self._store.set(_KEY, {})
            return error
        if change is None or error.retryable or not change.excuses(error, datetime.now(UTC)):
            return error
        names, until = ", ".join(change.connections), change.at + RETRIED_FOR
        hint = (
            f"It is tried again until {until:%H:%M} UTC, because {names} changed under the running sink and "
            "may change back."
        )
        retried = JobFailedError(error.primary, error.detail, " ".join(filter(None, [error.hint, hint])))
        return retried.of(*error.connections)

    def _unsettled(self) -> Change | None:
        found = self._store.get(_KEY)
        return Change.from_mapping(found) if isinstance(found, dict) and found else None
