"""What makes a table of files fit a query: columns to add, types to widen. Pure: types in, steps out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from airflow_provider_sinks.connectors.table_format.fit import written
from airflow_provider_sinks.connectors.table_format.types import Column, SparkType, spark_kind
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    NeedsMigration,
    OnSchemaChange,
    SchemaDiff,
    Step,
    WidenColumn,
    incompatible,
    never_added,
    of_case,
)
from airflow_provider_sinks.core.spec.problems import UnfitError


class Types(ABC):
    """The types of one format, as far as columns are added or widened."""

    kind: str
    """The kind of target, as a spec names it."""

    @abstractmethod
    def added(self, name: str, given: SparkType) -> str:
        """Return the type of a new column, in the common form.

        :raises UnfitError: there is no such column, and what would help.
        """

    @abstractmethod
    def widened(self, given: str, own: str) -> str | None:
        """Return the type with which a column takes a query's; nothing where it does, or none wider would.

        All types are in the common form.

        :param given: by the query.
        :param own: of the column.
        """


@dataclass(frozen=True)
class Evolving:
    """A table that is there, and what may become of it.

    :param name: of the table.
    :param columns: that it has.
    :param fixed: columns that stay as they are: of the key, and of the partitioning.
    :param taken: names, in small letters, that the format gives to no column, and why.
    """

    name: str
    columns: Mapping[str, Column]
    fixed: Collection[str]
    policy: OnSchemaChange
    types: Types
    taken: Mapping[str, str] = field(default_factory=dict)

    def steps(self, given: Mapping[str, SparkType], names: Sequence[str] | None) -> tuple[Step, ...]:
        """Return what makes it fit a query, as far as the option allows.

        :param names: the columns that the spec names, if it does.
        """
        return tuple(self._steps(given, written(list(given), names), self.policy))

    def after(self, steps: Sequence[Step]) -> dict[str, Column]:
        """Return its columns behind some steps."""
        columns = dict(self.columns)
        for step in steps:
            match step:
                case AddColumn():
                    columns[step.name] = Column(step.name, step.kind, step.kind)
                case WidenColumn():
                    columns[step.name] = replace(columns[step.name], kind=step.after, shown=step.after)
                case other:
                    assert_never(other)
        return columns

    def judged(
        self,
        given: Mapping[str, SparkType],
        names: Sequence[str] | None,
        steps: tuple[Step, ...],
        problems: Sequence[Problem],
    ) -> SchemaDiff:
        """Return what a comparison comes to.

        :param problems: that are left behind these steps.
        """
        if not problems:
            statements = tuple(statement(self.name, step) for step in steps)
            return NeedsMigration(self.name, steps, statements) if steps else Compatible()
        wanted = written(list(given), names)
        left = [step for step in self._steps(given, wanted, OnSchemaChange.WIDEN) if step not in steps]
        never = {
            why.where: why for name in wanted if (why := self._obstacle(name, given, wanted)) is not None
        }
        told = [never.get(problem.where, problem) for problem in problems]
        return incompatible(self.types.kind, self.name, self.policy, told, left=left)

    def _steps(
        self, given: Mapping[str, SparkType], names: Sequence[str], policy: OnSchemaChange
    ) -> Iterator[Step]:
        for name in names:
            if name not in given or name in self.fixed:
                continue
            column = self.columns.get(name)
            if column is None:
                if policy.adds and self._obstacle(name, given, names) is None:
                    yield AddColumn(name, self.types.added(name, given[name]), given[name])
            elif (
                policy.widens
                and (wider := self.types.widened(spark_kind(given[name]), column.kind)) is not None
            ):
                yield WidenColumn(name, column.kind, wider)

    def _obstacle(self, name: str, given: Mapping[str, SparkType], names: Sequence[str]) -> Problem | None:
        """Return why a column that is missing cannot be added; nothing where it can."""
        if name in self.columns or name not in given:
            return None
        if (why := self.taken.get(name.lower())) is not None:
            return never_added(name, why, "give it another name in the query, with AS")
        try:
            self.types.added(name, given[name])
        except UnfitError as unfit:
            return never_added(name, str(unfit).removeprefix(f"column {name!r}: "), unfit.hint)
        return of_case(name, [*self.columns, *names])


def is_done(step: Step, columns: Mapping[str, Column]) -> bool:
    """Return whether a table has what a step gives it."""
    column = columns.get(step.name)
    match step:
        case AddColumn():
            return column is not None and column.kind == step.kind
        case WidenColumn():
            return column is not None and column.kind == step.after
        case other:
            assert_never(other)


def may_begin(step: Step, columns: Mapping[str, Column]) -> bool:
    """Return whether a table still is as it was when a step was decided."""
    column = columns.get(step.name)
    match step:
        case AddColumn():
            return column is None
        case WidenColumn():
            return column is not None and column.kind == step.before
        case other:
            assert_never(other)


def statement(table: str, step: Step) -> str:
    """Return what a person would write in Spark to do the same."""
    column = f"`{step.name.replace('`', '``')}`"
    match step:
        case AddColumn():
            return f"ALTER TABLE {table} ADD COLUMN {column} {_quoted(step.kind)}"
        case WidenColumn():
            return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {step.after}"
        case other:
            assert_never(other)


def _quoted(kind: str) -> str:
    """Return a type as Spark reads it: names inside of structs in its own quotes."""
    return kind.replace('"', "`")
