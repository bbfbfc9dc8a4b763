"""What stands in a folder of DAGs and sinks, as plain facts: they cross from process to process as JSON."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pydantic import JsonValue, TypeAdapter

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.sink import SinkSpec


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file. Lines count from 1, which also stands for the file as a whole."""

    file: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class End(enum.StrEnum):
    """How the reading of a Python file ended."""

    READ = "read"
    FAILED = "failed"
    HUNG = "hung"
    DIED = "died"


class ReachKind(enum.StrEnum):
    """What a file may not ask for while it is read."""

    NETWORK = "network"
    CONNECTION = "connection"
    VARIABLE = "variable"


class TaskKind(enum.StrEnum):
    """What a task does with a sink."""

    SUBMIT = "submit"
    CHECK = "check"
    VALIDATE = "validate"


@dataclass(frozen=True)
class Reach:
    """A file asked for something while it was read.

    :param what: the address, or the id of the connection, or the key of the Variable.
    """

    kind: ReachKind
    what: str
    place: Place


@dataclass(frozen=True)
class Failure:
    """An exception that ended the reading of a file, or a mistake behind which the reading went on.

    :param kind: the name of the exception's class.
    :param text: its message.
    :param problems: what our own errors say in detail.
    """

    place: Place
    kind: str
    text: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class DagFacts:
    """A DAG as Airflow would take it.

    :param text: how Airflow serialises it, as JSON with sorted keys.
    :param flaw: why Airflow would not take it, or empty.
    :param broken: what it says of a sink of a YAML file that it stands for.
    """

    dag_id: str
    place: Place
    text: str = ""
    flaw: str = ""
    broken: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class SinkFacts:
    """A sink that a task is given: data that may or may not be a sink, and where it was declared."""

    place: Place
    data: JsonValue

    @property
    def judged(self) -> tuple[SinkSpec | None, tuple[Problem, ...]]:
        """The sink, if it is valid, and its problems."""
        return _judged(json.dumps(self.data, sort_keys=True))


@dataclass(frozen=True)
class TaskFacts:
    """A task that has to do with sinks.

    :param sinks: what is known of its sinks; empty for templates and outputs of other tasks.
    :param yaml: the YAML file and the name there, when the sink stands in one.
    :param outlets: the names of the assets that it writes.
    """

    dag_id: str
    task_id: str
    kind: TaskKind
    place: Place
    sinks: tuple[SinkFacts, ...] = ()
    yaml: tuple[str, str] | None = None
    deferrable: bool = False
    deploy_mode: str | None = None
    outlets: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileFacts:
    """What reading a Python file once showed.

    :param seconds: how long it took, without the time to import Airflow.
    :param stood_at: where it was when the limit for reading had passed, or when it was ended.
    """

    file: str
    end: End
    seconds: float = 0.0
    failures: tuple[Failure, ...] = ()
    reaches: tuple[Reach, ...] = ()
    dags: tuple[DagFacts, ...] = ()
    tasks: tuple[TaskFacts, ...] = ()
    stood_at: Place | None = None

    @property
    def slow_place(self) -> Place:
        """The line that took the time, as far as it is known."""
        return self.stood_at or Place(self.file)


@dataclass(frozen=True)
class YamlFacts:
    """What a YAML file of sinks holds: sinks that are valid, and problems, each with its place."""

    file: str
    sinks: tuple[tuple[Place, SinkSpec], ...] = ()
    problems: tuple[tuple[Place, Problem], ...] = ()


@dataclass(frozen=True)
class Declared:
    """A valid sink that somebody runs, or that stands in a YAML file.

    :param task: the task that runs it, if one does.
    """

    place: Place
    spec: SinkSpec
    task: TaskFacts | None = None


@dataclass(frozen=True)
class Limits:
    """How long the reading of one file may take.

    :param parse_seconds: more is a finding.
    :param hang_seconds: then the reading is ended.
    """

    parse_seconds: float = 5.0
    hang_seconds: float = 30.0


@dataclass(frozen=True)
class FolderFacts:
    """All facts of a folder, each Python file read twice, by processes that order sets differently."""

    files: tuple[FileFacts, ...] = ()
    again: tuple[FileFacts, ...] = ()
    yaml: tuple[YamlFacts, ...] = ()
    limits: Limits = Limits()

    @property
    def tasks(self) -> Iterator[TaskFacts]:
        """All tasks that have to do with sinks."""
        return (task for file in self.files for task in file.tasks)

    @cached_property
    def sinks(self) -> tuple[Declared, ...]:
        """All valid sinks, in the order of their places."""
        run = [declared for task in self.tasks for declared in self._run_by(task)]
        known = {(declared.place, declared.spec.name) for declared in run}
        listed = [Declared(place, spec) for file in self.yaml for place, spec in file.sinks]
        waiting = [entry for entry in listed if (entry.place, entry.spec.name) not in known]
        return tuple(sorted([*run, *waiting], key=_order))

    @cached_property
    def _yaml_places(self) -> Mapping[tuple[str, str], Place]:
        return {(file.file, spec.name): place for file in self.yaml for place, spec in file.sinks}

    def _run_by(self, task: TaskFacts) -> Iterator[Declared]:
        for sink in task.sinks if task.kind is TaskKind.SUBMIT else ():
            spec = sink.judged[0]
            if spec is not None:
                yield Declared(self._yaml_places.get(task.yaml or ("", ""), sink.place), spec, task)


@lru_cache(maxsize=4096)
def _judged(text: str) -> tuple[SinkSpec | None, tuple[Problem, ...]]:
    """Judge a sink once for all tasks that have it."""
    try:
        return SinkSpec.parse(json.loads(text)), ()
    except ConfigurationError as error:
        return None, error.problems


def _order(sink: Declared) -> tuple[Place, str, Place]:
    return sink.place, sink.spec.name, sink.task.place if sink.task else sink.place


FILE_FACTS = TypeAdapter(FileFacts)
"""Reads and writes the facts of a file as JSON."""
