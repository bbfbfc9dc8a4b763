"""What a person writes: the options of the target, what is right about them, and the names of the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, StrictStr

from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.parts import DeadLetterPart, Target, TargetOptions
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import Rule, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec

OWN_PREFIX = "_sinks_"
PROGRESS_TABLE = f"{OWN_PREFIX}progress"


def _file(value: str) -> str:
    path = PurePosixPath(value)
    if not path.is_absolute() or ".." in path.parts or len(path.parts) == 1:
        raise UnfitError(f"{value!r} is no file", "write its whole path, such as /data/sinks.db")
    return str(path)


def _table(value: str) -> str:
    if not value.isidentifier() or value.startswith((OWN_PREFIX, "sqlite_")):
        raise UnfitError(f"{value!r} is no name of a table", "write letters, digits and _, such as orders")
    return value


File = Annotated[StrictStr, AfterValidator(_file)]
Table = Annotated[StrictStr, AfterValidator(_table)]


class MyTargetOptions(TargetOptions):
    """A table to write."""

    file: File
    table: Table


class MyTargetChoice(Target):
    """Where rows go. The name of the field is the one that specs write."""

    mytarget: MyTargetOptions


class MyTargetDeadLetter(DeadLetterPart):
    """The table of what does not parse."""

    table: Table


class MyTargetSink(SinkSpec):
    """A sink with such a target."""

    right_target: ClassVar[Any] = {"mytarget": {"file": "/a.db", "table": "a"}}
    dead_letter_example: ClassVar[str] = "{table: orders_dead}"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.mytarget.file": Bearing.OUTPUT,
        "target.mytarget.table": Bearing.OUTPUT,
        "dead_letter.table": Bearing.LETTERS,
    }

    target: MyTargetChoice
    dead_letter: MyTargetDeadLetter | None = None
    progress: None = None

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return ((needs("target", "dead_letter"), _tables),)

    @property
    def progress_is_shared(self) -> bool:
        """All sinks of one file have their records in one table."""
        return True

    @property
    def tables(self) -> dict[Role, str]:
        """The tables of the sink, as its file has them."""
        named = {Role.DATA: self.target.mytarget.table, Role.PROGRESS: PROGRESS_TABLE}
        return named | ({Role.DEAD_LETTER: self.dead_letter.table} if self.dead_letter else {})

    @property
    def resources(self) -> dict[Role, str]:
        """Their names as no other file has them: two sinks with one name write the same table."""
        return {role: resource_name(self.target.mytarget.file, name) for role, name in self.tables.items()}

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made."""
        return {role: PlainCreation(role, name) for role, name in self.resources.items()}

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        return {"file": self.target.mytarget.file}

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        options = self.target.mytarget
        yield f"- target: table `{options.table}` of `{options.file}`, progress in the same transaction"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: table `{self.dead_letter.table}` of the same file"


def mytarget_sink(spec: SinkSpec) -> MyTargetSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, MyTargetSink):
        raise JobFailedError(f'sink "{spec.name}" has no mytarget target')
    return spec


def resource_name(file: str, table: str) -> str:
    """Return what a table is called in messages and records."""
    return f"{file}#{table}"


def _tables(spec: MyTargetSink) -> Iterator[Problem]:
    if spec.dead_letter is not None and spec.dead_letter.table == spec.target.mytarget.table:
        yield Problem("dead_letter.table", "is the table of the rows", "give it a table of its own")
