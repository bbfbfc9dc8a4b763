"""A sink whose target is a Delta table: its part of the spec, and the rules over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from airflow_provider_sinks.connectors.delta import places
from airflow_provider_sinks.connectors.table_format.spec import (
    ROW_RULES,
    Mode,
    TableSink,
    demand_key,
    not_in_key,
)
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.fields import Columns, ConnectionId
from airflow_provider_sinks.core.spec.parts import DeadLetterPart, EvolvingTarget, Target
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import QUERY, Rule, known_column, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from airflow_provider_sinks.core.decision.facts import Creation

TablePath = Annotated[
    StrictStr,
    AfterValidator(places.checked),
    Field(
        json_schema_extra={"pattern": places.PATH_PATTERN}, description="its folder, or s3://bucket/folder"
    ),
]


class DeltaTarget(EvolvingTarget):
    """A Delta table to write. Its path is its short form, where it needs no connection."""

    short_form = places.PATH_PATTERN

    path: TablePath
    connection: ConnectionId | None = Field(
        default=None, description="an Airflow connection to its storage; none: a folder of the machine"
    )
    key: Columns = Field(default=(), description="columns of the key; rows of one key replace each other")
    mode: Mode = Mode.APPEND
    create: StrictBool = False
    columns: Columns | None = Field(default=None, description="columns to write; none: all of the query")
    partition_by: Columns = Field(
        default=(), description="partitions of a table that the sink makes: columns"
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> DeltaTarget:
        demand_key(self)
        if self.may_change.widens:
            what = "Delta reads older files by a wider type only in tables that are not written here"
            raise UnfitError(
                f"on_schema_change: widen is not for Delta: {what}", "add_columns, and a CAST in the query"
            )
        if self.partition_by and not self.create:
            raise UnfitError("partition_by is for a table that the sink makes", "create: true")
        if places.is_local(self.path) and self.connection is not None:
            raise UnfitError(f"{self.path!r} is a folder: no connection leads there", "leave connection out")
        if not places.is_local(self.path) and self.connection is None:
            hint = "connection: <one of type delta>; without keys in it the machine's own role counts"
            raise UnfitError(f"{self.path!r} needs a connection to its storage", hint)
        return self


class DeltaDeadLetter(DeadLetterPart):
    """The table for what does not parse, on the target's storage. Its path will do."""

    short_form = places.PATH_PATTERN

    path: TablePath

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class DeltaChoice(Target):
    """Where rows go."""

    delta: DeltaTarget


class DeltaSink(TableSink):
    """A sink into a Delta table."""

    right_target: ClassVar[Any] = {"delta": {"path": "/a"}}
    dead_letter_example: ClassVar[str] = "{path: /data/orders_dead}"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.delta.path": Bearing.OUTPUT,
        "target.delta.connection": Bearing.PLACE,
        "target.delta.key": Bearing.KEY,
        "target.delta.mode": Bearing.FORM,
        "target.delta.create": Bearing.MAKING,
        "target.delta.columns": Bearing.ROWS,
        "target.delta.partition_by": Bearing.MAKING,
        "target.delta.on_schema_change": Bearing.RUN,
        "dead_letter.path": Bearing.LETTERS,
    }

    target: DeltaChoice
    dead_letter: DeltaDeadLetter | None = None

    @property
    def target_connection(self) -> str | None:
        """The id of the connection to the storage, where it needs one."""
        return self.target.delta.connection

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return _RULES

    @property
    def resources(self) -> dict[Role, str]:
        """The paths of the sink's tables; the progress stands in the log of the first."""
        path = self.target.delta.path
        named = {Role.DATA: path, Role.PROGRESS: path}
        return named | ({Role.DEAD_LETTER: self.dead_letter.path} if self.dead_letter else {})

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made; the target only where the spec says so."""
        from airflow_provider_sinks.connectors.table_format.creation import (
            CreateTable,
            KeepProgress,
            dead_letter_table,
        )

        target = self.target.delta
        made: dict[Role, Creation] = {
            Role.PROGRESS: KeepProgress(Role.PROGRESS, target.path, "the log"),
            Role.DATA: CreateTable(
                Role.DATA,
                target.path,
                key=target.key,
                partition_by=target.partition_by,
                not_set="" if target.create else "target.delta.create is not set.",
            ),
        }
        if self.dead_letter is not None:
            made[Role.DEAD_LETTER] = dead_letter_table(self.dead_letter.path)
        return made

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        target = self.target.delta
        return {
            "mode": target.mode.value,
            "partition_by": ", ".join(target.partition_by) or None,
            "dead_letter_table": self.dead_letter.path if self.dead_letter else None,
        }

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.delta
        yield f"- target: Delta table `{target.path}`, {target.mode}"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: table `{self.dead_letter.path}`, right behind the rows"
        yield "- progress: in the table's log, in the same commits as the rows"


def delta_sink(spec: SinkSpec) -> DeltaSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, DeltaSink):
        raise JobFailedError(f'sink "{spec.name}" has no Delta target')
    return spec


def _partitions(spec: DeltaSink) -> Iterator[Problem]:
    shape, target = spec.readable_shape, spec.target.delta
    for index, name in enumerate(target.partition_by):
        where = f"target.delta.partition_by[{index}]"
        if "(" in name:
            hint = "make a column of it in the query, such as to_date(at) AS day, and name that"
            yield Problem(where, f"{name!r} is no column: Delta knows no transforms", hint)
        elif shape is not None and not shape.problems and shape.columns is not None:
            yield from known_column(where, name, shape.columns, "the output")
        if name in target.partition_by[:index]:
            yield Problem(where, f"{name!r} stands there already", "leave one of them out")
        if target.mode is Mode.UPSERT and name not in target.key:
            yield not_in_key(where, name)


def _tables(spec: DeltaSink) -> Iterator[Problem]:
    if spec.dead_letter is None:
        return
    data, dead = spec.target.delta.path, spec.dead_letter.path
    if dead == data:
        what = f"{dead!r} is target.delta.path already"
        yield Problem("dead_letter.path", what, "dead letters need a table of their own")
    elif f"{dead}/".startswith(f"{data}/") or f"{data}/".startswith(f"{dead}/"):
        what = f"{dead!r} and target.delta.path lie in each other"
        yield Problem("dead_letter.path", what, "write a folder beside it")
    elif places.system_of(dead) != places.system_of(data):
        what = f"{dead!r} is not on the storage of target.delta.path"
        yield Problem("dead_letter.path", what, "one connection leads to one storage")


_RULES: tuple[Rule, ...] = (
    *ROW_RULES,
    (needs(*QUERY, "target"), _partitions),
    (needs("target", "dead_letter"), _tables),
)
