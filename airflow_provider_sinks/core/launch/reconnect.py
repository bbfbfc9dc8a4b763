"""Go on with a driver that runs on a cluster, or end it and start anew? Decided from what is known.

A task that comes back (a retry, a clear, a restart of the scheduler) must never leave two drivers. It goes on
with one only if all of this holds; every other driver of its sink is ended first:

* it is the driver of the very launch that this task noted down before it submitted;
* the task was not cleared since: clearing a task is how a person says *start again*;
* its connections are, as far as they may be seen, the ones that the driver got;
* nobody has asked that driver to stop: what is being ended must not be waited for as if it would go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_sinks.core.connection.follow import unlike
from airflow_provider_sinks.core.launch.yarn import Application, launch_tag

NOT_MINE = "it is not the driver of this task"
"""Why a driver is ended beside the one that is gone on with, or where none is known to be the task's."""
_CLEARS = "generation"
"""What the first releases called the number of clears, and what is stored since."""


@dataclass(frozen=True)
class NotedLaunch:
    """What a task notes down of its driver, in its own state store: ids, and never a secret.

    :param launch_id: random text of this launch, noted before the submit, so that a driver is found whose
        worker died before it learned the driver's id.
    :param launch: the number of the launch.
    :param clears: how often the task was cleared, as :func:`clears` of the operator counts.
    :param status_uri: the folder or URI with the launch's status.
    :param id: the application's id, or empty before it was known.
    :param connections: what tells the options apart that the driver got (``visible_digests``).
    :param sink: its spec, for a later try that finds none in the DAG any more.
    """

    launch_id: str
    launch: int
    clears: int
    status_uri: str
    id: str = ""
    connections: Mapping[str, str] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)

    def differs_from(self, connections: Mapping[str, str]) -> bool:
        """Return whether the driver got other options than these; unknown ones do not differ."""
        return bool(unlike(self.connections, connections))

    def to_mapping(self) -> dict[str, Any]:
        """Return the JSON object that is stored."""
        fields = asdict(self)
        return {_CLEARS: fields.pop("clears"), **fields}

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> NotedLaunch:
        """Read back what :meth:`to_mapping` returned."""
        fields = dict(data)
        return cls(clears=fields.pop(_CLEARS), **fields)


@dataclass(frozen=True)
class GoOn:
    """A task goes on with the driver that runs.

    :param noted: what it noted down of that driver.
    :param end: other drivers of the sink, to be ended, and waited for, before anything else.
    """

    driver: Application
    noted: NotedLaunch
    end: tuple[Application, ...] = ()


@dataclass(frozen=True)
class LaunchAnew:
    """A task launches the sink.

    :param end: the drivers to end, and to wait for, before anything else.
    :param why: why a driver that runs is not gone on with; empty when there is none.
    """

    end: tuple[Application, ...] = ()
    why: str = ""


def first_of(
    noted: NotedLaunch | None,
    clears: int,
    alive: Iterable[Application],
    *,
    durable: bool,
    stopping: bool,
    changed: bool = False,
) -> GoOn | LaunchAnew:
    """Return what a task does first.

    :param noted: what the task noted down before, if anything.
    :param clears: how often the task was cleared.
    :param alive: the sink's applications that are not over.
    :param durable: whether going on is wanted at all.
    :param stopping: whether somebody asked the noted driver to stop.
    :param changed: whether the connections of the noted driver changed since, and are to be followed.
    """
    running = tuple(alive)
    mine = own(noted, running)
    if noted is None or mine is None:
        return LaunchAnew(running, NOT_MINE if running else "")
    why = _obstacle(noted, clears, durable=durable, stopping=stopping, changed=changed)
    if why:
        return LaunchAnew(running, why)
    return GoOn(mine, noted, tuple(app for app in running if app is not mine))


def own(noted: NotedLaunch | None, alive: Iterable[Application]) -> Application | None:
    """Return the driver of the launch that was noted down, if it is not over."""
    return next((app for app in alive if noted and launch_tag(noted.launch_id) in app.tags), None)


def _obstacle(noted: NotedLaunch, clears: int, *, durable: bool, stopping: bool, changed: bool) -> str:
    if not durable:
        return "durable is off"
    if noted.clears != clears:
        return "the task was cleared"
    if stopping:
        return "it was asked to stop"
    return "its connections changed" if changed else ""
