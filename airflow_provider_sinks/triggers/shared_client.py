"""The resource managers that the triggers of one triggerer ask: hundreds of them name the same connection."""

from __future__ import annotations

import threading
import time

from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.drivers.on_yarn import yarn_client

_FRESH_SECONDS = 60.0
_clients: dict[str, tuple[float, YarnClient]] = {}
_lock = threading.Lock()


def shared_client(spark_conn_id: str) -> YarnClient:
    """Return the resource manager that a Spark connection names, read at most once a minute.

    A client keeps nothing between two requests, so that many may use one.

    :raises ConfigurationError: the connection does not name one.
    """
    with _lock:
        read_at, client = _clients.get(spark_conn_id, (0.0, None))
        if client is None or time.monotonic() - read_at >= _FRESH_SECONDS:
            client = yarn_client(spark_conn_id)
            _clients[spark_conn_id] = time.monotonic(), client
        return client


def forget_clients() -> None:
    """Read every connection anew. Called by tests, whose managers come and go."""
    with _lock:
        _clients.clear()
