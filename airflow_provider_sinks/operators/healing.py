"""A launch that follows a changed connection and cannot run is tried again: the connection may change back.

Without a change such a failure needs a person at once: wrong credentials stay wrong. Right after one, the
change itself is the likely cause. Whoever made it may take it back, as ``AlterConnectionRestartOperator``
does, and then nobody should have to start the sink by hand.

That a change is not settled yet is noted in the task's state store, so that retries know of it. A launch that
came to run settles it, whatever ends it later.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_sinks.core.errors import FencedError, JobFailedError, SinkError
from airflow_provider_sinks.core.status import SinkStatus
from airflow_provider_sinks.hooks.memory import Store

_KEY = "unsettled_connections"


class Healing:
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
            self._store.set(_KEY, list(changed))

    def end(self, error: SinkError, status: SinkStatus | None) -> SinkError:
        """Return the error that a launch ends with: one that a retry may mend, while a change is not settled.

        :param status: the newest status of the launch; it has a ``run`` if the sink came to run.
        """
        changed = self._store.get(_KEY) or []
        if changed and status is not None and status.run:
            self._store.set(_KEY, [])
            return error
        if not changed or error.retryable or isinstance(error, FencedError):
            return error
        names = ", ".join(map(str, changed))
        hint = f"It is tried again, because {names} changed under the running sink and may change back."
        return JobFailedError(error.primary, error.detail, " ".join(filter(None, [error.hint, hint])))
