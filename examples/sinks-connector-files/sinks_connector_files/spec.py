"""A sink whose target is a folder of Parquet files: its part of the spec, and the rules over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr

from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.parts import Part, Target, TargetOptions
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import Rule, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec

PROGRESS_FOLDER = "_sinks_progress"


def _folder(value: str) -> str:
    path = PurePosixPath(value)
    if not path.is_absolute() or ".." in path.parts or len(path.parts) == 1:
        raise UnfitError(f"{value!r} is no folder", "write its whole path, such as /data/orders")
    return str(path)


Folder = Annotated[StrictStr, AfterValidator(_folder)]


class FilesTarget(TargetOptions):
    """A folder of Parquet files to write."""

    path: Folder
    progress: Folder | None = Field(
        default=None, description=f"folder of the progress; none: {PROGRESS_FOLDER} beside the path"
    )

    @property
    def place(self) -> str:
        """The folder of the progress, which sinks may share."""
        return self.progress or str(PurePosixPath(self.path).parent / PROGRESS_FOLDER)


class FilesChoice(Target):
    """Where rows go."""

    files: FilesTarget


class FilesDeadLetter(Part):
    """The folder for what does not parse."""

    path: Folder


class CreateTable(PlainCreation):
    """An action: this folder must be a table of the sink, or a progress place."""

    def __str__(self) -> str:
        return f'create {self.role.called(ResourceKind.TABLE)} "{self.name}"'


class FilesSink(SinkSpec):
    """A sink into a folder of Parquet files. It needs no Airflow connection."""

    right_target: ClassVar[Any] = {"files": {"path": "/a"}}
    dead_letter_example: ClassVar[str] = "{path: /data/orders-dead}"
    progress_option: ClassVar[str] = "target.files.progress"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.files.path": Bearing.OUTPUT,
        "target.files.progress": Bearing.PROGRESS,
        "dead_letter.path": Bearing.LETTERS,
    }

    target: FilesChoice
    dead_letter: FilesDeadLetter | None = None
    progress: None = None

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return _RULES

    @property
    def columns_apart(self) -> tuple[str, ...] | None:
        """All columns of the query."""
        return self.shape.columns

    @property
    def progress_is_shared(self) -> bool:
        """Each sink has a log of its own in the folder of the progress."""
        return True

    @property
    def resources(self) -> dict[Role, str]:
        """The folders of the sink."""
        target = self.target.files
        named = {Role.DATA: target.path, Role.PROGRESS: target.place}
        return named | ({Role.DEAD_LETTER: self.dead_letter.path} if self.dead_letter else {})

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made."""
        return {role: CreateTable(role, name) for role, name in self.resources.items()}

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        dead = self.dead_letter.path if self.dead_letter else None
        return {"progress_folder": self.target.files.place, "dead_letter_folder": dead}

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        yield f"- target: Parquet files in `{self.target.files.path}`, those that a manifest names"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: Parquet files in `{self.dead_letter.path}`"
        yield f"- progress, and the manifests: `{self.target.files.place}`"


def files_sink(spec: SinkSpec) -> FilesSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, FilesSink):
        raise JobFailedError(f'sink "{spec.name}" has no files target')
    return spec


def _folders(spec: FilesSink) -> Iterator[Problem]:
    options = {Role.PROGRESS: "target.files.progress", Role.DEAD_LETTER: "dead_letter.path"}
    for role, option in options.items():
        name = spec.resources.get(role)
        others = [other for other_role, other in spec.resources.items() if other_role is not role]
        if name is not None and name in others:
            yield Problem(option, f"{name!r} is another folder of the sink", "give it a folder of its own")


_RULES: tuple[Rule, ...] = ((needs("target", "dead_letter"), _folders),)
