"""What Airflow says of the DAGs of sinks that wait in this triggerer; asked seldom, and once for each DAG."""

from __future__ import annotations

import threading
import time

from airflow_provider_sinks.core.dag_gone import Listed
from airflow_provider_sinks.hooks.dag_looks import listed

AGAIN_SECONDS = 300.0
"""A triggerer serves few calls a second, and a DAG is gone for good only after several such looks."""

_ANY = ""
_lock = threading.Lock()
_said: dict[str, tuple[float, Listed]] = {}


def listed_lately(dag_id: str) -> Listed:
    """Return what Airflow said of a DAG in the last minutes; while it cannot be asked, no DAG is asked for.

    Blocks: for a thread of a pool.
    """
    with _lock:
        for key in (dag_id, _ANY):
            asked_at, said = _said.get(key, (0.0, Listed.UNKNOWN))
            if asked_at and time.monotonic() - asked_at < AGAIN_SECONDS:
                return said
        said = listed(dag_id)
        _said[_ANY if said is Listed.UNKNOWN else dag_id] = time.monotonic(), said
        return said


def forget() -> None:
    """Ask anew the next time."""
    with _lock:
        _said.clear()
