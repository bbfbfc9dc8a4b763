"""What Airflow says of the DAGs of sinks that wait in this triggerer; asked seldom, and once for each DAG."""

from __future__ import annotations

import threading
import time

from airflow_provider_sinks.core.lifecycle import dag_gone
from airflow_provider_sinks.core.lifecycle.dag_gone import Listed
from airflow_provider_sinks.metadata.dags import listed

NOW_SECONDS = 10.0

_ANY = ""
_lock = threading.Lock()
_said: dict[str, tuple[float, Listed]] = {}


def listed_lately(dag_id: str, *, now: bool = False) -> Listed:
    """Return what Airflow said of a DAG in the last minutes; while it cannot be asked, no DAG is asked for.

    Blocks: for a thread of a pool.

    :param now: something is about to be done for it: an answer may be seconds old, not minutes.
    """
    again_seconds = NOW_SECONDS if now else dag_gone.LOOK_OF_MANY_SECONDS
    with _lock:
        for key in (dag_id, _ANY):
            asked_at, said = _said.get(key, (0.0, Listed.UNKNOWN))
            if asked_at and time.monotonic() - asked_at < again_seconds:
                return said
        said = listed(dag_id)
        _said[_ANY if said is Listed.UNKNOWN else dag_id] = time.monotonic(), said
        return said


def forget() -> None:
    """Ask anew the next time."""
    with _lock:
        _said.clear()
