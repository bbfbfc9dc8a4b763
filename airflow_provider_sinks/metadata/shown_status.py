"""What is only shown of a sink: its newest status, and under another key what came before.

It stands in the state store of the sink's asset. Nothing hangs on it, so it has no second copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.launch.published import published
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.lifecycle.state_history import StateHistory, from_mappings, to_mappings, told
from airflow_provider_sinks.metadata.store import HISTORY_KEY, STATUS_KEY, Store, attempt

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class ShownStatus:
    """Writes the status of one sink, each time that there is a new one.

    :param sink: the sink's name.
    :param store: the state store of the sink's asset.
    :param log: takes warnings about writes that failed.
    :param follows: whether the sink launches again when a connection changes; others are told.
    """

    def __init__(self, sink: str, store: Store, log: Logger, *, follows: bool) -> None:
        self._sink = sink
        self._store = store
        self._log = log
        self._follows = follows
        self._history: StateHistory | None = None
        self._shown: Mapping[str, Any] | None = None

    def show(self, status: SinkStatus) -> bool:
        """Write a status, and add to the history what it has to tell; a failure is a warning.

        :return: whether both were written.
        """
        written = attempt(self._log, self._sink, "status", "asset store", lambda: self._publish(status))
        return written and attempt(
            self._log, self._sink, "history", "asset store", lambda: self._tell(status)
        )

    def _publish(self, status: SinkStatus) -> None:
        """Write the status, with what is still known from before."""
        if self._shown is None or self._shown.get("launch") != status.launch:
            self._shown = self._store.get(STATUS_KEY) or {}
        document = published(status, follows=self._follows, before=self._shown)
        self._store.set(STATUS_KEY, document)
        self._shown = document

    def _tell(self, status: SinkStatus) -> None:
        """Add to the history what the status has to tell; most of the time that is nothing.

        Before it writes it reads again: a person may have paused the sink meanwhile, by the REST API.
        """
        if self._history is not None and told(self._history, status) is self._history:
            return
        before = from_mappings(self._store.get(HISTORY_KEY) or ())
        self._history = told(before, status)
        if self._history is not before:
            self._store.set(HISTORY_KEY, to_mappings(self._history))
