"""A driver on YARN as Airflow sees it: whether it lives, how far it is, and its end.

The manager knows the first, the status tells the second, and the end is asked for before it is made: a driver
that finds ``stop`` beside its status ends between two epochs; one that does not is killed, and its open
transactions are ended. Both are exact.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_sinks.clients.launch_store import LaunchStore
from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.launch.yarn import Application, Fate, fate
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import resolve, spark_connection

if TYPE_CHECKING:
    from airflow.sdk.types import Logger
    from requests.auth import AuthBase

_POLL_SECONDS = 0.5
_DEAD_SECONDS = 60.0
"""How long a killed application may take until the manager says that it is over."""
_IN_ORDER = frozenset({SinkState.STOPPED, SinkState.FENCED})
"""Ends that leave no transaction of ours open."""


def yarn_client(spark_conn_id: str, auth: AuthBase | None = None) -> YarnClient:
    """Return the resource manager that a Spark connection names.

    :param auth: how to prove who we are; without it Kerberos is used where the connection has a keytab.
    :raises ConfigurationError: the connection does not name one, or its Kerberos cannot be used.
    """
    spark_connection(spark_conn_id)
    hook = SparkSubmitHook(conn_id=spark_conn_id, yarn_track_via_rm_api=True, yarn_rm_auth=auth)
    try:
        return YarnClient(hook._get_yarn_rm_base_url(), hook._resolved_yarn_rm_auth)  # noqa: SLF001
    except (ValueError, RuntimeError) as error:
        problem = Problem("extra", str(error))
        raise ConfigurationError(
            f'connection "{spark_conn_id}" does not lead to a YARN resource manager', [problem]
        ) from None


class ClusterDriver:
    """One driver.

    :param client: the resource manager.
    :param id: the application's id.
    :param store: where its status stands.
    :param log: takes a line when something cannot be seen, and when it can be seen again.
    """

    def __init__(self, client: YarnClient, id: str, store: LaunchStore, log: Logger) -> None:  # noqa: A002
        self.client = client
        self.id = id
        self.store = store
        self._log = log

    def application(self) -> Application | None:
        """Return what the manager says; ``None`` when it does not know the application.

        :raises UnavailableError: the manager cannot be asked.
        """
        return self.client.application(self.id)

    def status_text(self) -> str | None:
        """Return the newest status as text, or ``None`` before the first.

        :raises OSError: it cannot be read, which says nothing about the driver.
        """
        try:
            return self.store.read_status()
        except UnavailableError as error:
            raise OSError(str(error)) from error

    def status(self) -> SinkStatus | None:
        """Return the newest status, or ``None`` when there is none that can be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            text = self.status_text()
            return SinkStatus.from_json(text) if text else None
        return None

    def end(self, polite_seconds: float, dead_seconds: float = _DEAD_SECONDS) -> None:
        """Return when the driver is over: by itself, asked to, or killed.

        :param polite_seconds: how long it may take to end between two epochs.
        :param dead_seconds: how long the manager may take to end it.
        :raises UnavailableError: the manager cannot be asked, or the driver does not end.
        """
        try:
            self.store.ask_to_stop()
        except UnavailableError as error:
            self._log.warning("driver %s cannot be asked to stop, so it is killed: %s", self.id, error)
            polite_seconds = 0
        if not self.over_within(polite_seconds):
            self.kill(dead_seconds)

    def kill(self, dead_seconds: float = _DEAD_SECONDS) -> None:
        """Kill the driver, and return when it is over.

        :raises UnavailableError: the manager cannot be asked, or the driver does not end.
        """
        self.client.kill(self.id)
        if not self.over_within(dead_seconds):
            raise UnavailableError(
                f"driver {self.id} was killed and does not end",
                f"The manager at {self.client.url} still runs it after {dead_seconds:.0f} s.",
                "Look at the node that runs it; nothing is started beside it.",
            )

    def over_within(self, seconds: float) -> bool:
        """Wait until the driver is over or the time is, and return whether the driver is."""
        pause_seconds = min(_POLL_SECONDS, max(seconds / 4, 0.05))
        return holds_within(lambda: fate(self.application()) is not Fate.ALIVE, seconds, pause_seconds)


def end_transactions(spec: SinkSpec, status: SinkStatus | None, seconds: float, log: Logger) -> None:
    """End what a driver left open that did not end in order; called when it is over and none follows.

    :param status: the newest status of its launch.
    :param seconds: how long it may take.
    """
    if status is None or not status.run or status.state in _IN_ORDER:
        return
    try:
        kind(spec).end_abandoned(spec, resolve(spec), status.run, status.writers, seconds)
    except (SinkError, ImportError) as error:
        log.warning(
            "the driver was ended in the middle of an epoch; readers may wait for up to %.0f s: %s",
            spec.transaction_timeout.total_seconds(),
            error,
        )
