"""What the spec of a sink into tables of files and snapshots has, whatever their format."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, cast

from pydantic import field_validator

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import QUERY, Rule, known_column, needs
from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec, Writers


class Mode(enum.StrEnum):
    """What a row does to the table."""

    APPEND = "append"
    UPSERT = "upsert"


class WritesRows(Protocol):
    """The options that a target of any such format has."""

    @property
    def mode(self) -> Mode:
        """What a row does."""

    @property
    def key(self) -> Sequence[str]:
        """Columns by which rows replace each other."""

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns to write; none: all of the query."""


def demand_key(options: WritesRows) -> None:
    """See that there is a key where one is needed, and only there.

    :raises UnfitError: with what to write.
    """
    if options.mode is Mode.UPSERT and not options.key:
        raise UnfitError("mode upsert needs a key", "key: [column]")
    if options.mode is Mode.APPEND and options.key:
        raise UnfitError("a key is of no use in mode append", "mode: upsert, or leave key out")
    missing = [name for name in options.key if options.columns is not None and name not in options.columns]
    if missing:
        raise UnfitError(f"key column {missing[0]!r} is not among columns", "add it to columns")


class TableSink(SinkSpec):
    """A sink into such a table, which keeps the progress too."""

    progress: None = None

    @field_validator("progress", mode="before")
    @classmethod
    def _in_the_table(cls, value: Any) -> Any:
        if value is not None:
            raise UnfitError("is no option of this target", "leave it out: the table keeps the progress")
        return value

    @property
    def writer_mode(self) -> Writers:
        """Who writes: one writer where rows replace each other, which must see each key once in an epoch."""
        return Writers.SINGLE if _options(self).mode is Mode.UPSERT else super().writer_mode

    @property
    def deletes_by(self) -> tuple[str, ...]:
        """The key, where rows of one key replace each other."""
        return tuple(_options(self).key)

    @property
    def columns_apart(self) -> tuple[str, ...] | None:
        """The columns that are written."""
        named = _options(self).columns
        return self.shape.columns if named is None else tuple(named)

    @property
    def progress_is_shared(self) -> bool:
        """Each sink has entries of its own in the table that it writes."""
        return True


def _options(spec: TableSink) -> WritesRows:
    return cast("WritesRows", spec.target.options)


def _named_columns(spec: TableSink) -> Iterator[Problem]:
    shape, options = spec.readable_shape, _options(spec)
    if shape is None or shape.problems or shape.unknown_columns or shape.columns is None:
        return
    for option, names in (("key", options.key), ("columns", options.columns or ())):
        for index, name in enumerate(names):
            where = f"target.{spec.target_kind}.{option}[{index}]"
            yield from known_column(where, name, shape.columns, "the output")


def _changing_rows(spec: TableSink) -> Iterator[Problem]:
    shape = spec.readable_shape
    if shape is None or shape.problems or not shape.stateful or _options(spec).mode is Mode.UPSERT:
        return
    if spec.stream_mode is OutputMode.UPDATE:
        what = "append would keep each state that a row of a stateful query ever had"
        hint = "mode: upsert with a key, or output_mode: append"
        yield Problem(f"target.{spec.target_kind}.mode", what, hint)


def _deletes(spec: TableSink) -> Iterator[Problem]:
    if spec.source_has_deletes and _options(spec).mode is not Mode.UPSERT:
        what = f"append keeps rows that envelope {spec.source_envelope} deletes"
        yield Problem(f"target.{spec.target_kind}.mode", what, "mode: upsert, with a key")


def _one_writer(spec: TableSink) -> Iterator[Problem]:
    if _options(spec).mode is Mode.UPSERT and spec.writers is Writers.PER_PARTITION:
        what = "per_partition does not go with mode upsert: an epoch must bring each key once"
        yield Problem("writers", what, "leave writers out")


def not_in_key(where: str, column: str) -> Problem:
    """Return what is wrong with a partitioning by a column that is not in the key."""
    what = f"column {column!r} is not in the key: a row could not replace one of another partition"
    return Problem(where, what, "partition by columns of the key")


ROW_RULES: Final[tuple[Rule, ...]] = (
    (needs("target", "writers"), _one_writer),
    (needs("source", "target"), _deletes),
    (needs(*QUERY, "target"), _named_columns),
    (needs(*QUERY, "target", "output_mode"), _changing_rows),
)
"""The rules between the options of :class:`WritesRows` and the rest of the sink."""
