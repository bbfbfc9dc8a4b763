"""One launch of a sink as the operator sees it: an order in, an end out.

Where the driver runs is a launch's own business: on the worker (``client_launch.py``), or somewhere else
behind the same three methods. The operator loops over launches and knows nothing of processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_provider_sinks.arguments import plain
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.launch.files import Launch
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.launch_folders import checkpoint_root
from airflow_provider_sinks.metadata.memory import Memory, SinkMemory
from airflow_provider_sinks.operators.submit.driver_error import error_of

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


@dataclass(frozen=True)
class LaunchOrder:
    """What one launch is to run.

    :param connections: with their secrets; printed without them.
    :param memory: of the sink, this launch already counted.
    :param accept: a one-time answer to one refusal, or ``None``.
    """

    spec: SinkSpec
    connections: ResolvedConnections
    memory: Memory
    accept: str | None = None

    @property
    def number(self) -> int:
        """How many launches the sink has had, this one included."""
        return self.memory.launch

    def launch(self) -> Launch:
        """Return what the driver is told."""
        witness = self.memory.witness
        return Launch(
            spec=plain(self.spec),
            number=self.number,
            owner=self.memory.owner,
            checkpoint_root=checkpoint_root(self.spec),
            witness=json.loads(witness.to_json()) if witness else None,
            accept=self.accept,
        )


@dataclass(frozen=True)
class Listeners:
    """Who hears how a launch goes.

    :param memory: takes the witness and the status that is shown.
    :param log: the task's log.
    :param tell: told each new status, from a thread beside the task's own.
    """

    memory: SinkMemory
    log: Logger
    tell: Callable[[SinkStatus], None]


@dataclass(frozen=True)
class LaunchEnd:
    """How a launch ended.

    :param exit_code: of the driver, negative for a signal; 0 when it ended well.
    :param status: the newest status, or ``None`` when the driver left none.
    :param last_lines: the end of the driver's log.
    :param stopped: whether Airflow ended it: marked, cleared, timed out or shut down.
    :param changed: the connections for whose sake it was ended, so that the next launch follows them.
    """

    exit_code: int
    status: SinkStatus | None = None
    last_lines: str = ""
    stopped: bool = False
    changed: tuple[str, ...] = ()

    def error(self, sink: str) -> SinkError | None:
        """Return what the end means, or ``None`` when there is nothing to complain about.

        A launch that was ended for its connections' sake may end in any way that a retry would mend: the
        next launch is that retry.
        """
        if self.stopped:
            return stopped(sink)
        if not self.exit_code:
            return None
        error = error_of(self.exit_code, sink, self.status, self.last_lines)
        return None if self.changed and error.retryable else error


def stopped(sink: str) -> JobFailedError:
    """Return the error of a task that Airflow ends."""
    return JobFailedError(f'sink "{sink}" was stopped by Airflow', "What it committed stays.")


class SinkLaunch(Protocol):
    """One start of a sink's driver. Made for one :meth:`run`."""

    def run(self) -> LaunchEnd:
        """Start the driver, follow it to its end, and return how it ended. Called once, by the task.

        When it returns or raises, no driver of this launch is left.
        """

    def restart(self, changed: tuple[str, ...]) -> None:
        """End the driver politely because connections changed. Called from a thread beside :meth:`run`.

        :param changed: the ids of the connections; they come back with the end. None when no launch
            follows.
        """

    def end(self) -> None:
        """End the driver for good, within the five seconds that Airflow gives.

        Called from a signal handler in the middle of :meth:`run`, before it or after it: it asks Airflow for
        nothing, and takes no lock that the interrupted thread may hold.
        """
