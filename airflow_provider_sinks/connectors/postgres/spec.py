"""A sink whose target is a Postgres table: its part of the spec, and the rules over it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, StrictBool, model_validator

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.fields import Columns, TableName
from airflow_provider_sinks.core.spec.parts import (
    ConnectedTarget,
    DeadLetterPart,
    EvolvingTarget,
    Target,
    Tombstones,
)
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import QUERY, Rule, known_column, needs
from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.postgres.creation import CreateTable

PROGRESS_TABLE = "_sinks_progress"


class Mode(enum.StrEnum):
    """What a row does to the table."""

    APPEND = "append"
    UPSERT = "upsert"


class PostgresTarget(ConnectedTarget, EvolvingTarget):
    """A Postgres table to write. ``connection/schema.table`` is its short form."""

    short_form = r"^[^\s]+/[^/.]+\.[^/.]+$"

    table: TableName
    key: Columns = Field(default=(), description="columns of the key; rows of one key replace each other")
    mode: Mode = Mode.APPEND
    create: StrictBool = False
    columns: Columns | None = Field(default=None, description="columns to write; none: all of the query")
    tombstones: Tombstones = Tombstones.IGNORE
    progress: TableName | None = Field(
        default=None, description=f"table of the progress; none: {PROGRESS_TABLE} in the target's schema"
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        connection, slash, table = value.rpartition("/")
        if not slash:
            raise UnfitError(f"{value!r} is no short form", "write connection/schema.table")
        return {"connection": connection, "table": table}

    @model_validator(mode="after")
    def _fits(self) -> PostgresTarget:
        if self.mode is Mode.UPSERT and not self.key:
            raise UnfitError("mode upsert needs a key", "key: [column], with a unique index in the table")
        if self.mode is Mode.APPEND and self.key:
            raise UnfitError("a key is of no use in mode append", "mode: upsert, or leave key out")
        if self.tombstones is Tombstones.DELETE and self.mode is not Mode.UPSERT:
            raise UnfitError("tombstones: delete needs mode upsert", "mode: upsert, with a key")
        missing = [name for name in self.key if self.columns is not None and name not in self.columns]
        if missing:
            raise UnfitError(f"key column {missing[0]!r} is not among columns", "add it to columns")
        return self

    @property
    def progress_table(self) -> str:
        """The table of the progress, with its schema."""
        return self.progress or f"{self.table.partition('.')[0]}.{PROGRESS_TABLE}"


class PostgresDeadLetter(DeadLetterPart):
    """The table for what does not parse or is not taken, on the target's connection. Its name will do."""

    short_form = r"^[^/.]+\.[^/.]+$"

    table: TableName

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"table": value} if isinstance(value, str) else value


class PostgresChoice(Target):
    """Where rows go."""

    postgres: PostgresTarget


class PostgresSink(SinkSpec):
    """A sink into a Postgres table."""

    right_target: ClassVar[Any] = {"postgres": "a/b.c"}
    dead_letter_example: ClassVar[str] = "{table: schema.table}"
    progress_option: ClassVar[str] = "target.postgres.progress"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.postgres.connection": Bearing.PLACE,
        "target.postgres.table": Bearing.OUTPUT,
        "target.postgres.key": Bearing.KEY,
        "target.postgres.mode": Bearing.FORM,
        "target.postgres.create": Bearing.MAKING,
        "target.postgres.columns": Bearing.ROWS,
        "target.postgres.tombstones": Bearing.ROWS,
        "target.postgres.progress": Bearing.PROGRESS,
        "target.postgres.on_schema_change": Bearing.RUN,
        "dead_letter.table": Bearing.LETTERS,
    }

    target: PostgresChoice
    dead_letter: PostgresDeadLetter | None = None
    progress: None = None

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return _RULES

    @property
    def deletes_by(self) -> tuple[str, ...]:
        """The key, where rows of one key replace each other."""
        return self.target.postgres.key

    @property
    def columns_apart(self) -> tuple[str, ...] | None:
        """The columns that are written."""
        named = self.target.postgres.columns
        return self.shape.columns if named is None else named

    @property
    def progress_is_shared(self) -> bool:
        """Sinks into one schema share its progress table."""
        return True

    @property
    def resources(self) -> dict[Role, str]:
        """The names of the sink's tables."""
        target = self.target.postgres
        named = {Role.DATA: target.table, Role.PROGRESS: target.progress_table}
        return named | ({Role.DEAD_LETTER: self.dead_letter.table} if self.dead_letter else {})

    def creations(self) -> dict[Role, CreateTable]:
        """Return how each of them is made; the target only where the spec says so."""
        from airflow_provider_sinks.connectors.postgres import creation

        target = self.target.postgres
        made = {
            Role.PROGRESS: creation.progress_table(target.progress_table),
            Role.DATA: creation.data_table(target.table, target.key, may_be_made=target.create),
        }
        if self.dead_letter is not None:
            made[Role.DEAD_LETTER] = creation.dead_letter_table(self.dead_letter.table)
        return made

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        target = self.target.postgres
        return {
            "mode": target.mode.value,
            "progress_table": target.progress_table,
            "dead_letter_table": self.dead_letter.table if self.dead_letter else None,
        }

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.postgres
        yield f"- target: table `{target.table}` of connection `{target.connection}`, {target.mode}"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: table `{self.dead_letter.table}`, in the same transactions"
        yield f"- progress: table `{target.progress_table}`, in the same transactions as the rows"


def postgres_sink(spec: SinkSpec) -> PostgresSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, PostgresSink):
        raise JobFailedError(f'sink "{spec.name}" has no Postgres target')
    return spec


def _named_columns(spec: PostgresSink) -> Iterator[Problem]:
    shape, target = spec.readable_shape, spec.target.postgres
    if shape is None or shape.problems or shape.unknown_columns or shape.columns is None:
        return
    for option, names in (("key", target.key), ("columns", target.columns or ())):
        for index, name in enumerate(names):
            yield from known_column(f"target.postgres.{option}[{index}]", name, shape.columns, "the output")


def _tables(spec: PostgresSink) -> Iterator[Problem]:
    options = {
        Role.DATA: "target.postgres.table",
        Role.PROGRESS: "target.postgres.progress",
        Role.DEAD_LETTER: "dead_letter.table",
    }
    seen: dict[str, str] = {}
    for role, name in spec.resources.items():
        first = seen.setdefault(name, options[role])
        if first != options[role]:
            yield Problem(
                options[role], f"{name!r} is {first} already", "each of them needs a table of its own"
            )


def _deletes(spec: PostgresSink) -> Iterator[Problem]:
    target, envelope = spec.target.postgres, spec.source_envelope
    if not spec.source_has_deletes:
        return
    if target.mode is not Mode.UPSERT:
        hint = "mode: upsert, with a key and tombstones: delete"
        yield Problem(
            "target.postgres.mode", f"{target.mode} keeps rows that envelope {envelope} deletes", hint
        )
    elif target.tombstones is not Tombstones.DELETE:
        what = f"{target.tombstones} keeps rows that envelope {envelope} deletes"
        yield Problem("target.postgres.tombstones", what, "tombstones: delete")


def _changing_rows(spec: PostgresSink) -> Iterator[Problem]:
    shape = spec.readable_shape
    if shape is None or shape.problems or not shape.stateful or spec.target.postgres.mode is Mode.UPSERT:
        return
    if spec.stream_mode is OutputMode.UPDATE:
        what = "append would keep each state that a row of a stateful query ever had"
        yield Problem("target.postgres.mode", what, "mode: upsert with a key, or output_mode: append")


_RULES: tuple[Rule, ...] = (
    (needs(*QUERY, "target"), _named_columns),
    (needs(*QUERY, "target", "output_mode"), _changing_rows),
    (needs("source", "target"), _deletes),
    (needs("target", "dead_letter"), _tables),
)
