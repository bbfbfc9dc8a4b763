"""A sink whose target is an Iceberg table: its part of the spec, and the rules over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictStr,
    model_validator,
)

from airflow_provider_sinks.connectors.table_format.spec import (
    ROW_RULES,
    Mode,
    TableSink,
    demand_key,
    not_in_key,
)
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem, nearest
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.fields import Columns, ConnectionId, Scalar
from airflow_provider_sinks.core.spec.parts import ConnectedTarget, DeadLetterPart, EvolvingTarget, Target
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import QUERY, Rule, known_column, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from airflow_provider_sinks.core.decision.facts import Creation

_TABLE = r'[^\s./"`\\][^./"`\\\x00-\x1f]*'
TABLE_PATTERN = rf"^{_TABLE}(\.{_TABLE})+$"
_PROPERTIES = """
    commit.manifest-merge.enabled commit.manifest.min-count-to-merge commit.manifest.target-size-bytes
    comment gc.enabled history.expire.max-snapshot-age-ms history.expire.min-snapshots-to-keep
    read.split.target-size write.data.path write.distribution-mode write.metadata.compression-codec
    write.metadata.delete-after-commit.enabled write.metadata.metrics.default
    write.metadata.metrics.max-inferred-column-defaults write.metadata.path
    write.metadata.previous-versions-max write.object-storage.enabled
    write.object-storage.partitioned-paths write.parquet.compression-codec
    write.parquet.compression-level write.parquet.dict-size-bytes write.parquet.page-row-limit
    write.parquet.page-size-bytes write.parquet.row-group-limit write.target-file-size-bytes
    """
PROPERTIES = tuple(sorted(_PROPERTIES.split()))
"""The properties that a sink may give a table that it makes: how files are laid out, and nothing that
names a class."""
_METRICS = "write.metadata.metrics.column."


def _table(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(TABLE_PATTERN, value):
        raise UnfitError(f"{value!r} is not a table", "namespace.table, such as shop.orders")
    return value


def _property(value: str) -> str:
    if value in PROPERTIES or value.startswith(_METRICS):
        return value
    raise UnfitError(f"{value!r} is no property that a sink sets", nearest(value, PROPERTIES))


TableName = Annotated[StrictStr, BeforeValidator(_table), Field(json_schema_extra={"pattern": TABLE_PATTERN})]
Properties = Annotated[
    dict[Annotated[StrictStr, AfterValidator(_property)], Scalar],
    Field(description="properties of a table that the sink makes"),
]


class IcebergTarget(ConnectedTarget, EvolvingTarget):
    """An Iceberg table to write. ``catalog/namespace.table`` is its short form."""

    short_form = r"^[^\s]+/[^/.]+(\.[^/.]+)+$"

    connection: ConnectionId = Field(alias="catalog", description="an Airflow connection to its catalog")
    table: TableName
    key: Columns = Field(default=(), description="columns of the key; rows of one key replace each other")
    mode: Mode = Mode.APPEND
    create: StrictBool = False
    columns: Columns | None = Field(default=None, description="columns to write; none: all of the query")
    partition_by: Columns = Field(
        default=(), description="partitions of a table that the sink makes: columns, day(at), bucket(16, id)"
    )
    properties: Properties = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        catalog, slash, table = value.rpartition("/")
        if not slash:
            raise UnfitError(f"{value!r} is no short form", "write catalog/namespace.table")
        return {"catalog": catalog, "table": table}

    @model_validator(mode="after")
    def _fits(self) -> IcebergTarget:
        demand_key(self)
        for option in ("partition_by", "properties"):
            if getattr(self, option) and not self.create:
                raise UnfitError(f"{option} is for a table that the sink makes", "create: true")
        return self


class IcebergDeadLetter(DeadLetterPart):
    """The table for what does not parse, in the target's catalog. Its name will do."""

    short_form = r"^[^/.]+(\.[^/.]+)+$"

    table: TableName

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"table": value} if isinstance(value, str) else value


class IcebergChoice(Target):
    """Where rows go."""

    iceberg: IcebergTarget


class IcebergSink(TableSink):
    """A sink into an Iceberg table."""

    right_target: ClassVar[Any] = {"iceberg": "a/b.c"}
    dead_letter_example: ClassVar[str] = "{table: namespace.table}"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.iceberg.catalog": Bearing.PLACE,
        "target.iceberg.table": Bearing.OUTPUT,
        "target.iceberg.key": Bearing.KEY,
        "target.iceberg.mode": Bearing.FORM,
        "target.iceberg.create": Bearing.MAKING,
        "target.iceberg.columns": Bearing.ROWS,
        "target.iceberg.partition_by": Bearing.MAKING,
        "target.iceberg.properties": Bearing.MAKING,
        "target.iceberg.on_schema_change": Bearing.RUN,
        "dead_letter.table": Bearing.LETTERS,
    }

    target: IcebergChoice
    dead_letter: IcebergDeadLetter | None = None

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return _RULES

    @property
    def resources(self) -> dict[Role, str]:
        """The names of the sink's tables; the progress stands in the metadata of the first."""
        table = self.target.iceberg.table
        named = {Role.DATA: table, Role.PROGRESS: table}
        return named | ({Role.DEAD_LETTER: self.dead_letter.table} if self.dead_letter else {})

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made; the target only where the spec says so."""
        from airflow_provider_sinks.connectors.iceberg.creation import data_table
        from airflow_provider_sinks.connectors.table_format.creation import KeepProgress, dead_letter_table

        target = self.target.iceberg
        made: dict[Role, Creation] = {
            Role.PROGRESS: KeepProgress(Role.PROGRESS, target.table, "the properties"),
            Role.DATA: data_table(target),
        }
        if self.dead_letter is not None:
            made[Role.DEAD_LETTER] = dead_letter_table(self.dead_letter.table)
        return made

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        target = self.target.iceberg
        return {
            "mode": target.mode.value,
            "partition_by": ", ".join(target.partition_by) or None,
            "dead_letter_table": self.dead_letter.table if self.dead_letter else None,
        }

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.iceberg
        yield f"- target: Iceberg table `{target.table}` of catalog `{target.connection}`, {target.mode}"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: table `{self.dead_letter.table}`, right behind the rows"
        yield "- progress: in the table's properties and snapshots, in the same commits as the rows"


def iceberg_sink(spec: SinkSpec) -> IcebergSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, IcebergSink):
        raise JobFailedError(f'sink "{spec.name}" has no Iceberg target')
    return spec


def _partitions(spec: IcebergSink) -> Iterator[Problem]:
    from airflow_provider_sinks.connectors.iceberg.partitions import PartitionTerm

    shape, target = spec.readable_shape, spec.target.iceberg
    named: dict[str, str] = {}
    for index, text in enumerate(target.partition_by):
        where = f"target.iceberg.partition_by[{index}]"
        try:
            term = PartitionTerm.parse(text)
        except UnfitError as unfit:
            yield Problem(where, str(unfit), unfit.hint)
            continue
        if (other := named.setdefault(term.name, text)) != text or text in target.partition_by[:index]:
            what = f"{text!r} and {other!r} make one field: {term.name}"
            yield Problem(where, what, "leave one of them out")
        if shape is not None and not shape.problems and shape.columns is not None:
            yield from known_column(where, term.column, shape.columns, "the output")
        if target.mode is Mode.UPSERT and term.column not in target.key:
            yield not_in_key(where, term.column)


def _tables(spec: IcebergSink) -> Iterator[Problem]:
    if spec.dead_letter is not None and spec.dead_letter.table == spec.target.iceberg.table:
        what = f"{spec.dead_letter.table!r} is target.iceberg.table already"
        yield Problem("dead_letter.table", what, "dead letters need a table of their own")


_RULES: tuple[Rule, ...] = (
    *ROW_RULES,
    (needs(*QUERY, "target"), _partitions),
    (needs("target", "dead_letter"), _tables),
)
