"""What becomes of a target's columns when the query gives others: the option, the steps, the comparison.

A step only adds: a column, null in all rows before, or a type that holds every value of the one before.
Nothing here drops, narrows or renames a column, changes a key, or forbids null: whoever reads the table, and
whatever was written, must be served by the table as it was.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL

OPTION = "on_schema_change"


class OnSchemaChange(enum.StrEnum):
    """What a start does where the query's columns do not fit a table that is there."""

    REFUSE = "refuse"
    ADD_COLUMNS = "add_columns"
    WIDEN = "widen"
    """Adds columns too."""

    @property
    def adds(self) -> bool:
        """Whether a column that is missing is added."""
        return self is not OnSchemaChange.REFUSE

    @property
    def widens(self) -> bool:
        """Whether a column gets a type that holds more."""
        return self is OnSchemaChange.WIDEN


@dataclass(frozen=True)
class AddColumn:
    """A step: the table gets a column, null in the rows that it has.

    :param kind: its type in the target's words.
    :param spark: what the query gives, as Spark's own JSON has it.
    """

    name: str
    kind: str
    spark: Any = None

    def __str__(self) -> str:
        return f"add column {self.name!r} as {self.kind}, null in the rows before"


@dataclass(frozen=True)
class WidenColumn:
    """A step: a column gets a type that holds every value of its own.

    :param before: its type in the target's words.
    :param after: its new type, likewise.
    """

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"widen column {self.name!r} from {self.before} to {self.after}"


Step: TypeAlias = AddColumn | WidenColumn


@dataclass(frozen=True)
class Compatible:
    """The columns fit, or the table is still to be made of them."""


@dataclass(frozen=True)
class NeedsMigration:
    """They fit once these steps are done.

    :param table: which one, for people.
    :param steps: in their order.
    :param statements: what a person would write to do the same, one for each step.
    """

    table: str
    steps: tuple[Step, ...]
    statements: tuple[str, ...]

    def told(self) -> Iterator[str]:
        """Give each step with its statement."""
        for step, statement in zip(self.steps, self.statements, strict=True):
            yield f'alter data table "{self.table}": {step}: {statement}'


@dataclass(frozen=True)
class Incompatible:
    """They do not fit, and no step that is allowed makes them.

    :param problems: every reason.
    :param hint: the way on for all of them.
    """

    primary: str
    problems: tuple[Problem, ...]
    hint: str = ""

    def error(self) -> ConfigurationError:
        """Return the error that ends a start."""
        return ConfigurationError(self.primary, self.problems, self.hint)


SchemaDiff: TypeAlias = Compatible | NeedsMigration | Incompatible


def demanded(diff: SchemaDiff) -> NeedsMigration | None:
    """Return what a start has to do about the columns, if anything.

    :raises ConfigurationError: they do not fit.
    """
    match diff:
        case Compatible():
            return None
        case NeedsMigration():
            return diff
        case Incompatible():
            raise diff.error()
        case other:
            assert_never(other)


def way_on(kind: str, policy: OnSchemaChange, *, added: Sequence[str], widened: Sequence[str]) -> str:
    """Return what to write so that a start mends what it may not mend now; empty where nothing helps.

    :param kind: of the target, such as ``postgres``.
    :param added: columns that could be added.
    :param widened: columns that could be widened.
    """
    adds, widens = bool(added) and not policy.adds, bool(widened) and not policy.widens
    if not adds and not widens:
        return ""
    wanted = OnSchemaChange.WIDEN if widens else OnSchemaChange.ADD_COLUMNS
    acts = [f"adds {', '.join(added)}"] if adds else []
    acts += [f"widens {', '.join(widened)}"] if widens else []
    return f"With target.{kind}.{OPTION}: {wanted} a start {' and '.join(acts)}."


def incompatible(
    kind: str,
    table: str,
    policy: OnSchemaChange,
    problems: Sequence[Problem],
    *,
    left: Iterable[Step],
) -> Incompatible:
    """Return why a table does not fit, with the option that would mend it, if one does.

    :param kind: of the target, such as ``postgres``.
    :param left: the steps that would be possible, and that the option does not allow.
    """
    needed = {problem.where for problem in problems}
    wanted = [step for step in left if f"column {step.name!r}" in needed]
    hint = way_on(
        kind,
        policy,
        added=[step.name for step in wanted if isinstance(step, AddColumn)],
        widened=[step.name for step in wanted if isinstance(step, WidenColumn)],
    )
    return Incompatible(f'table "{table}" does not fit the query', tuple(problems), hint)


def never_added(name: str, why: str, hint: str) -> Problem:
    """Return why a table that lacks a column gets it by nobody.

    :param hint: what to write instead.
    """
    return Problem(f"column {name!r}", f"is not in the table, and cannot be added: {why}", hint)


def of_case(name: str, columns: Iterable[str]) -> Problem | None:
    """Return why a column is not added beside another whose name differs in case alone.

    :param columns: in their order: the first of two has the name.
    """
    first = next((other for other in columns if other.lower() == name.lower()), name)
    if first == name:
        return None
    why = f"it is one with column {first!r} to Spark, which tells no letters apart by their case"
    return never_added(name, why, "give it that name, or quite another one, in the query, with AS")


def columns_of(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return Spark's types of a query's own columns.

    :param output: its columns, as Spark writes a struct as JSON.
    """
    fields = output.get("fields", ())
    return {field["name"]: field["type"] for field in fields if not field["name"].startswith(INTERNAL)}
