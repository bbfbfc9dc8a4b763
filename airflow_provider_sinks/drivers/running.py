"""Drivers that run now, found by what runs and not by what Airflow knows: on this machine, and on YARN.

On this machine they are known by the launch directories that their processes run in, on YARN by their tags. A
driver of another Airflow has the same sink's tag but another owner's: it is none of ours, and is never named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, assert_never, cast

from airflow_provider_sinks.clients.launch_store import LaunchStore
from airflow_provider_sinks.core.launch.yarn import SINK_TAG, Application, owner_tag, sink_tag
from airflow_provider_sinks.core.lifecycle.steps import EndDriver, EndProcess, KillApplication
from airflow_provider_sinks.drivers.abandoned import end_process, living_drivers
from airflow_provider_sinks.drivers.launch_folders import launched_sinks, launches_of

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_log = cast("Logger", logging.getLogger(__name__))


@dataclass(frozen=True)
class RunningDrivers:
    """The drivers of all sinks, as they are at the first question.

    :param spark_conn_id: the connection that names a YARN resource manager; empty where none is asked.
    """

    spark_conn_id: str = ""

    def sinks(self, owner: str) -> set[str]:
        """Return the names of the sinks that have a driver.

        :param owner: whose sinks; a name that only YARN knows is in lower case, as YARN keeps it.
        """
        tags = {tag for app in self._on_yarn for tag in app.tags if tag.startswith(SINK_TAG)}
        tagged = {tag.removeprefix(SINK_TAG) for tag in tags}
        return {*self._here, *(sink for sink in tagged if self._of_yarn(sink, owner))}

    def of(self, sink: str, owner: str) -> tuple[EndDriver, ...]:
        """Return how each driver of a sink is ended."""
        on_yarn = (KillApplication(app.id, self.spark_conn_id) for app in self._of_yarn(sink, owner))
        return (*self._here.get(sink, ()), *on_yarn)

    def end(self, driver: EndDriver) -> None:
        """End a driver, and return when it is over.

        :raises UnavailableError: the manager cannot be asked, or the driver does not end.
        """
        match driver:
            case EndProcess():
                end_process(driver)
            case KillApplication(app_id, spark_conn_id):
                from airflow_provider_sinks.drivers.on_yarn import ClusterDriver, yarn_client

                ClusterDriver(yarn_client(spark_conn_id), app_id, LaunchStore(""), _log).kill()
            case _:
                assert_never(driver)

    def _of_yarn(self, sink: str, owner: str) -> Iterable[Application]:
        wanted = {sink_tag(sink), owner_tag(owner, sink)}
        return [app for app in self._on_yarn if wanted <= app.tags]

    @cached_property
    def _here(self) -> dict[str, tuple[EndProcess, ...]]:
        found = {sink: tuple(living_drivers(launches_of(sink))) for sink in launched_sinks()}
        return {sink: drivers for sink, drivers in found.items() if drivers}

    @cached_property
    def _on_yarn(self) -> tuple[Application, ...]:
        if not self.spark_conn_id:
            return ()
        from airflow_provider_sinks.drivers.on_yarn import yarn_client

        return yarn_client(self.spark_conn_id).running()
