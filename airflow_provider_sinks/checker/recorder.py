"""Records what a DAG file does while it is read, and keeps it from the network.

Works for one file and one process: what is installed here cannot be taken away again. The network is watched
through Python's audit events, which no code can avoid short of a client written in C; Connections and
Variables through a secrets backend, which Airflow asks first (:class:`RecordedLookups`).
"""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from airflow.sdk import DAG
from airflow.secrets.base_secrets import BaseSecretsBackend

import airflow_provider_sinks
from airflow_provider_sinks.checker.facts import Place, Reach, ReachKind
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec import build
from airflow_provider_sinks.core.spec.fields import NAME_PATTERN
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.yaml_files import ORIGIN, Origin

_NETWORK_EVENTS = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)


class NoNetworkError(OSError):
    """A DAG file asked for the network while it was read."""


class Recorder:
    """Remembers lines of a folder: where tasks and DAGs were made, sinks declared, and what was asked for."""

    current: ClassVar[Recorder | None] = None

    def __init__(self, folder: Path, file: Path) -> None:
        self._folder = str(folder)
        self._file = Place(str(file))
        self.reaches: list[Reach] = []
        self._made: dict[int, tuple[Place, Origin | None]] = {}
        self._declared: dict[str, Place] = {}
        self._stand_ins: set[str] = set()
        self.errors: list[tuple[Place, ConfigurationError]] = []
        self._reading = True

    def install(self) -> None:
        """Begin to record, for as long as this process lives."""
        Recorder.current = self
        sys.addaudithook(self._audit)
        self._after(DAG, "__init__", lambda made, *_: self._remember(made))
        self._after(DAG, "add_task", lambda _, task: self._remember(task))
        parse = SinkSpec.parse

        def recorded(data: Any, **how: Any) -> SinkSpec:
            spec = parse(data, **how)
            if self._reading:
                self._declared.setdefault(_identity(json.loads(spec.to_json())), self.here())
            return spec

        SinkSpec.parse = recorded  # type: ignore[method-assign]
        self._go_on_behind_broken_sinks()

    def _go_on_behind_broken_sinks(self) -> None:
        """Let ``Sink(...)`` return another sink where its own is not valid, so that what follows is read."""
        make = build.Sink

        @functools.wraps(make)
        def made(**given: Any) -> SinkSpec:
            try:
                return make(**given)
            except ConfigurationError as error:
                self.errors.append((self.here(), error))
                return self._stand_in(given.get("name"))

        build.Sink = made
        vars(airflow_provider_sinks).pop("Sink", None)  # it is looked up again

    def _stand_in(self, name: object) -> SinkSpec:
        """Return a valid sink that has nothing in common with any other but its name."""
        number = len(self.errors)
        known = isinstance(name, str) and re.fullmatch(NAME_PATTERN, name)
        ends = {"source": f"broken/in-{number}", "target": f"broken/out-{number}"}
        spec = SinkSpec.parse({"name": name if known else f"broken-{number}", **ends})
        self._stand_ins.add(_identity(json.loads(spec.to_json())))
        return spec

    def stands_in(self, data: Any) -> bool:
        """Tell whether a sink stands for one that is not valid."""
        return _identity(data) in self._stand_ins

    def finish(self) -> None:
        """Say that the file has been read: what follows is not its doing."""
        self._reading = False

    def here(self) -> Place:
        """Return the innermost line of the folder that is being run."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  there is no other way to see the callers
        while frame is not None:
            if self.is_inside(frame.f_code.co_filename):
                return Place(frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return self._file

    def is_inside(self, file: str) -> bool:
        """Tell whether a file is one of the folder's, and not of a package that was installed into it."""
        return is_inside(self._folder, file)

    def made_at(self, thing: object) -> Place:
        """Return the line that made a DAG or task."""
        return self._made.get(id(thing), (self._file, None))[0]

    def origin_of(self, thing: object) -> Origin | None:
        """Return the entry of a YAML file that a task was made from, if it was."""
        return self._made.get(id(thing), (self._file, None))[1]

    def declared_at(self, data: Any, otherwise: Place) -> Place:
        """Return the line that declared a sink."""
        return self._declared.get(_identity(data), otherwise)

    def asked(self, kind: ReachKind, what: str) -> None:
        """Remember that something was asked for that a file must not ask for while it is read."""
        reach = Reach(kind, what, self.here())
        if reach not in self.reaches:
            self.reaches.append(reach)

    def _remember(self, thing: object) -> None:
        self._made[id(thing)] = (self.here(), ORIGIN.get())  # the newest: ids of what is gone come back

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._reading and event in _NETWORK_EVENTS:
            self.asked(ReachKind.NETWORK, _address(arguments))
            raise NoNetworkError(f"no network while DAGs are read ({_address(arguments)})")

    def _after(self, cls: Any, name: str, then: Any) -> None:
        method = getattr(cls, name)

        @functools.wraps(method)
        def wrapped(made: Any, *arguments: Any, **named: Any) -> Any:
            then(made, *arguments)
            return method(made, *arguments, **named)

        setattr(cls, name, wrapped)


def is_inside(folder: str, file: str) -> bool:
    """Tell whether a file is one of a folder's, and not of a package that was installed into it."""
    return file.startswith(f"{folder}/") and "/site-packages/" not in file


class RecordedLookups(BaseSecretsBackend):
    """Knows no Connection and no Variable, and remembers who asked."""

    def get_connection(self, conn_id: str, team_name: str | None = None) -> None:  # noqa: ARG002
        """Return nothing."""
        _asked(ReachKind.CONNECTION, conn_id)

    def get_variable(self, key: str, team_name: str | None = None) -> None:  # noqa: ARG002
        """Return nothing."""
        _asked(ReachKind.VARIABLE, key)


def _asked(kind: ReachKind, what: str) -> None:
    if Recorder.current is not None:
        Recorder.current.asked(kind, what)


def _address(arguments: tuple[Any, ...]) -> str:
    """Return whom a socket was to talk to: an event has the socket first, or the name of a host."""
    address = arguments[1] if len(arguments) > 1 and not isinstance(arguments[0], str) else arguments[0]
    parts = address if isinstance(address, tuple) else arguments[:2]
    return ":".join(str(part) for part in parts[:2] if isinstance(part, str | int))


def _identity(data: Any) -> str:
    """Return what makes two declarations the same sink: all but the trigger, which ``every=`` replaces."""
    return json.dumps({key: data[key] for key in sorted(data) if key != "trigger"}, sort_keys=True)
