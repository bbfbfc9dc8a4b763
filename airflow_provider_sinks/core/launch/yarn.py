"""What a YARN resource manager says of an application, and what that means for a sink's driver.

The manager tells whether a driver lives; how it ended is told best by the driver itself, in its status.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.errors import ExitCode, kind_of
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus

SINK_TAG = "sink:"
_TAG_LONGEST = 100
_EXIT_CODE = re.compile(r"User application exited with status (\d+)")
"""In Spark's words. The exit code that the manager itself names is that of Spark's application master."""
_KILLED = -9


class AppState(enum.StrEnum):
    """How far the manager is with an application (``YarnApplicationState``)."""

    NEW = "NEW"
    NEW_SAVING = "NEW_SAVING"
    SUBMITTED = "SUBMITTED"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class FinalStatus(enum.StrEnum):
    """How an application says that it ended (``FinalApplicationStatus``)."""

    UNDEFINED = "UNDEFINED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    ENDED = "ENDED"


class Fate(enum.StrEnum):
    """What has become of a driver."""

    ALIVE = "alive"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Application:
    """What the manager says of one application.

    :param id: such as ``application_1795240018597_0001``.
    :param diagnostics: why it ended, in the manager's words.
    :param tracking_url: the page of a running driver, of its history, or of the manager about it.
    :param tags: in lower case, because the manager keeps them so.
    """

    id: str
    state: AppState
    final_status: FinalStatus
    diagnostics: str = ""
    tracking_url: str = ""
    tags: frozenset[str] = frozenset()


FATES: Mapping[tuple[AppState, FinalStatus], Fate] = {
    # An application that has said how it ended, but is not over for the manager, may still hold resources.
    **{
        (state, final): Fate.ALIVE
        for state in (
            AppState.NEW,
            AppState.NEW_SAVING,
            AppState.SUBMITTED,
            AppState.ACCEPTED,
            AppState.RUNNING,
        )
        for final in FinalStatus
    },
    (AppState.FINISHED, FinalStatus.SUCCEEDED): Fate.SUCCEEDED,
    (AppState.FINISHED, FinalStatus.FAILED): Fate.FAILED,
    (AppState.FINISHED, FinalStatus.KILLED): Fate.KILLED,
    # A driver that ended without a word has not succeeded.
    (AppState.FINISHED, FinalStatus.UNDEFINED): Fate.FAILED,
    (AppState.FINISHED, FinalStatus.ENDED): Fate.FAILED,
    **{(AppState.FAILED, final): Fate.FAILED for final in FinalStatus},
    **{(AppState.KILLED, final): Fate.KILLED for final in FinalStatus},
}
"""What each pair means."""

ALIVE = tuple(state for state in AppState if FATES[state, FinalStatus.UNDEFINED] is Fate.ALIVE)
"""The states of applications that are not over."""


def fate(application: Application | None) -> Fate:
    """Return what has become of a driver.

    :param application: ``None`` when the manager does not know it: it forgets applications that ended long
        ago, and never one that runs.
    """
    if application is None:
        return Fate.UNKNOWN
    return FATES[application.state, application.final_status]


def exit_code(application: Application | None, status: SinkStatus | None) -> int:
    """Return the exit code of a driver that is over; 0 when it ended well, negative for a signal.

    The driver's last words count before the manager's: they say which error it was.

    :param status: the newest status of its launch, if it can be read.
    """
    if status is not None and status.state.is_final:
        return _code_of(status)
    match fate(application):
        case Fate.SUCCEEDED:
            return ExitCode.OK
        case Fate.KILLED:
            return _KILLED
        case Fate.FAILED | Fate.UNKNOWN | Fate.ALIVE:
            found = _EXIT_CODE.search(application.diagnostics if application else "")
            return int(found[1]) if found else ExitCode.FAILED


def sink_tag(sink: str) -> str:
    """Return the tag by which people find a sink's applications."""
    return f"{SINK_TAG}{sink}"[:_TAG_LONGEST].lower()


def owner_tag(owner: str, sink: str) -> str:
    """Return the tag that only this sink of this Airflow has.

    The manager keeps tags in lower case, cuts none and knows nothing of Airflows: two sinks whose names
    differ in case only, or an equal name in another Airflow, must not end each other's drivers.
    """
    return f"sinks-{hashlib.sha256(f'{owner}/{sink}'.encode()).hexdigest()[:20]}"


def launch_tag(launch: str) -> str:
    """Return the tag of one launch.

    :param launch: random text, made once per launch.
    """
    return f"launch:{launch}".lower()


def spec_tag(spec: Mapping[str, Any]) -> str:
    """Return the tag by which a spec is known again as the one that a driver was launched with.

    :param spec: the sink, as JSON values.
    """
    return f"spec:{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()}"


def _code_of(status: SinkStatus) -> int:
    if status.state is SinkState.STOPPED:
        return ExitCode.OK
    return kind_of(status.error.kind).exit_code if status.error else ExitCode.FAILED
