"""A sink whose target is a format of Spark's: its part of the spec, and the rules over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr, field_validator, model_validator

from airflow_provider_sinks.connectors.spark_format.formats import (
    FORMAT_PATTERN,
    JDBC,
    SparkFormat,
    checked_format,
    demand_no_login,
    format_of,
)
from airflow_provider_sinks.connectors.spark_format.storage import plain
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.fields import Checkpoint, ConnectionId, Scalar, TableName
from airflow_provider_sinks.core.spec.parts import Target, TargetOptions
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import Rule, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers

if TYPE_CHECKING:
    from airflow_provider_sinks.core.decision.facts import Creation


def _folder(value: str) -> str:
    rest = value.partition(":")[2] if ":" in value else value
    path = rest[2:].partition("/")[2] if rest.startswith("//") else rest
    if not path.strip("/"):
        raise UnfitError(f"{value!r} is no folder of its own", "write a folder below it")
    return value.rstrip("/")


class SparkTarget(TargetOptions):
    """A format of Spark's, written by Spark's own writer."""

    format: Annotated[
        StrictStr,
        AfterValidator(checked_format),
        Field(
            json_schema_extra={"pattern": FORMAT_PATTERN}, description="parquet, jdbc, noop, any installed"
        ),
    ]
    path: Annotated[Checkpoint, AfterValidator(_folder)] | None = Field(
        default=None, description="the folder, or URI of one, for formats of files"
    )
    connection: ConnectionId | None = Field(
        default=None, description="jdbc: an Airflow connection of type postgres"
    )
    table: TableName | None = Field(default=None, description="jdbc: schema.table; it must be there")
    options: dict[StrictStr, Scalar] = Field(
        default_factory=dict, description="of the format's writer; none of them a secret"
    )

    @model_validator(mode="after")
    def _fits(self) -> SparkTarget:
        kind = self.kind
        if kind.is_files and self.path is None:
            raise UnfitError(f"format {self.format} needs a path", "path: /folder, or scheme://place/folder")
        if self.format == JDBC and (self.connection is None or self.table is None):
            raise UnfitError("format jdbc needs connection and table", "connection: pg, table: schema.table")
        if self.format != JDBC and (self.connection is not None or self.table is not None):
            raise UnfitError("connection and table are for format jdbc", "leave them out")
        if kind.options is not None and not kind.is_files and self.path is not None:
            raise UnfitError(f"format {self.format} has no path", "leave it out")
        return self

    @property
    def kind(self) -> SparkFormat:
        """What is known of the format."""
        return format_of(self.format)


class SparkChoice(Target):
    """Where rows go."""

    spark: SparkTarget


class SparkSink(SinkSpec):
    """A sink into a format of Spark's. Its progress follows behind the rows, beside Spark's checkpoint."""

    right_target: ClassVar[Any] = {"spark": {"format": "noop"}}
    dead_letter_example: ClassVar[str] = ""
    progress_option: ClassVar[str] = "checkpoint"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.spark.format": Bearing.FORM,
        "target.spark.path": Bearing.OUTPUT,
        "target.spark.connection": Bearing.PLACE,
        "target.spark.table": Bearing.OUTPUT,
        "target.spark.options": Bearing.ROWS,
        "checkpoint": Bearing.PROGRESS,
    }

    target: SparkChoice
    dead_letter: None = None
    progress: None = None

    @field_validator("dead_letter", mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        if value is not None:
            hint = (
                "read format text or bytes, and parse it in the query; a record that does not parse stops it"
            )
            raise UnfitError("Spark's own writers set nothing aside", hint)
        return value

    @property
    def target_connection(self) -> str | None:
        """The id of the connection of jdbc."""
        return self.target.spark.connection

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return _RULES

    @property
    def writer_mode(self) -> Writers:
        """One: Spark's, which writes an epoch as a whole."""
        return Writers.SINGLE

    @property
    def engine_guarantee(self) -> str:
        """What Spark guarantees of the rows, in one sentence."""
        return self.target.spark.kind.guarantee

    @property
    def columns_apart(self) -> tuple[str, ...] | None:
        """The columns of the query: Spark's own writers write all of them."""
        return self.shape.columns

    @property
    def progress_is_shared(self) -> bool:
        """Each sink has a folder of its own."""
        return False

    @property
    def output(self) -> str:
        """Where rows go. What has no name of its own is named after the sink, as no other sink's."""
        target = self.target.spark
        return target.path or target.table or f"{target.format} of {self.name}"

    @property
    def progress_folder(self) -> str:
        """The folder of the progress, beside those of Spark's checkpoints."""
        return f"{(self.checkpoint or '').rstrip('/')}/{self.name}/progress"

    @property
    def resources(self) -> dict[Role, str]:
        """Where the rows go, and the folder of the progress."""
        return {Role.DATA: self.output, Role.PROGRESS: self.progress_folder}

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made: folders by the sink, all else by its owner."""
        from airflow_provider_sinks.connectors.spark_format.creation import NotOurs, UseFolder

        data = UseFolder if self.target.spark.kind.is_files else NotOurs
        return {
            Role.PROGRESS: UseFolder(Role.PROGRESS, self.progress_folder),
            Role.DATA: data(Role.DATA, self.output),
        }

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        target = self.target.spark
        return {"format": target.format, "path": target.path, "guarantee": self.engine_guarantee}

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.spark
        yield f"- target: `{self.output}`, in Spark's format `{target.format}`"
        yield f"- progress: behind the rows, in `{self.progress_folder}`"


def spark_sink(spec: SinkSpec) -> SparkSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, SparkSink):
        raise JobFailedError(f'sink "{spec.name}" has no target of a Spark format')
    return spec


def _options(spec: SparkSink) -> Iterator[Problem]:
    target, seen = spec.target.spark, set[str]()
    for name, value in target.options.items():
        where = f"target.spark.options.{name}"
        try:
            spelled = target.kind.checked_option(name)
            demand_no_login(value)
        except UnfitError as unfit:
            yield Problem(where, str(unfit), unfit.hint)
        else:
            if spelled.lower() in seen:
                yield Problem(where, "stands there already, in another spelling", "leave one of them out")
            seen.add(spelled.lower())


def _checkpoint(spec: SparkSink) -> Iterator[Problem]:
    if spec.checkpoint is None:
        what = "is missing: the target keeps no progress, so it stands beside Spark's checkpoint"
        yield Problem("checkpoint", what, "checkpoint: a folder, or URI of one, that is kept as the rows are")


def _writers(spec: SparkSink) -> Iterator[Problem]:
    if spec.writers is Writers.PER_PARTITION:
        yield Problem("writers", "Spark's own writer writes whole epochs", "leave writers out")


def _places(spec: SparkSink) -> Iterator[Problem]:
    path, own = spec.target.spark.path, spec.checkpoint
    if path is None or own is None:
        return
    data, kept = f"{plain(path)}/", f"{plain(own).rstrip('/')}/"
    if data.startswith(kept) or kept.startswith(data):
        yield Problem("target.spark.path", "and checkpoint lie in each other", "write a folder beside it")


_RULES: tuple[Rule, ...] = (
    (needs("target"), _options),
    (needs("target", "checkpoint"), _checkpoint),
    (needs("writers"), _writers),
    (needs("target", "checkpoint"), _places),
)
