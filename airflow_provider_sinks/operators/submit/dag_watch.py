"""A thread that ends a running sink whose DAG is gone for good: nobody else would, and no page shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_sinks.core.lifecycle import dag_gone
from airflow_provider_sinks.core.lifecycle.dag_gone import Absence

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class DagWatch(threading.Thread):
    """Look for a DAG while the ``with`` block runs, which ends as skipped when the DAG is gone for good.

    Not as failed: a DAG that comes back after all is not paused for it, and an endless one runs again.

    :param dag_id: the DAG.
    :param is_gone: makes one look; what it raises says nothing.
    :param end: ends what the block runs, between two epochs if it can.
    :param log: takes a line when the DAG is missed, and when it is ended for it.
    """

    def __init__(
        self, dag_id: str, is_gone: Callable[[], bool], end: Callable[[], None], log: Logger
    ) -> None:
        super().__init__(name="sink-dag", daemon=True)
        self._dag_id = dag_id
        self._is_gone = is_gone
        self._end = end
        self._log = log
        self._absence = Absence()
        self._over = threading.Event()
        self._ended = False

    def run(self) -> None:
        """Look again and again. Called by :meth:`start`, in the new thread."""
        while not self._over.wait(dag_gone.LOOK_SECONDS):
            self._look()
            if self._absence.is_final(time.monotonic()):
                self._log.warning('DAG "%s" is gone for good: ending its sink', self._dag_id)
                self._ended = True
                self._end()
                return

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking; how the block ended does not count when it was ended from here."""
        self._over.set()
        if self._ended:
            self.join()
            raise AirflowSkipException(f'DAG "{self._dag_id}" is gone, so its sink was ended')

    def _look(self) -> None:
        before = self._absence
        self._absence = before.seen(gone=self._gone_now(), at_seconds=time.monotonic())
        if self._absence != before and self._absence.since_seconds is not None:
            self._log.warning(
                'DAG "%s" is gone; its sink is ended if it stays so for %.0f min',
                self._dag_id,
                dag_gone.GONE_FOR_SECONDS / 60,
            )

    def _gone_now(self) -> bool:
        try:
            return self._is_gone()
        except Exception:  # noqa: BLE001  whatever the reason: unseen is not gone
            return False
