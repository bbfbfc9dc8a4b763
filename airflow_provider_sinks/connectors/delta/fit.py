"""Do the columns of a query fit the table? All that does not is told at once, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_sinks.connectors.delta.adding import DeltaTypes, needs_features
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.delta.types import can_partition, created, required_inside
from airflow_provider_sinks.connectors.table_format.creation import CreateTable
from airflow_provider_sinks.connectors.table_format.evolution import Evolving
from airflow_provider_sinks.connectors.table_format.fit import (
    missing_in_query,
    missing_in_table,
    of_key_types,
    of_type,
    written,
)
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.types import Column, SparkType
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.evolution import SchemaDiff
from airflow_provider_sinks.core.spec.problems import UnfitError

_OPTION = "target.delta"


def demand_named(given: Mapping[str, SparkType], target: DeltaTarget) -> None:
    """See that the query gives the columns that the spec names.

    :raises ConfigurationError: with all problems.
    """
    if problems := list(_missing_in_query(given, target)):
        raise ConfigurationError(f'table "{target.path}" does not fit the query', problems)


def new_table(given: Mapping[str, SparkType], target: DeltaTarget) -> Layout:
    """Return the layout of the table that will be made from the types of a query.

    :raises ConfigurationError: there is no such table.
    """
    problems = list(_missing_in_query(given, target))
    columns = {name: given[name] for name in written(list(given), target.columns) if name in given}
    try:
        layout = Layout(created(columns), target.partition_by)
    except UnfitError as unfit:
        problems += list(_of_each(columns)) or [Problem("", str(unfit), unfit.hint)]
    else:
        problems += [*_of_partitions(target.partition_by, layout), *_of_key(target, layout)]
    if problems:
        raise ConfigurationError(f'table "{target.path}" cannot be made from the query', problems)
    return layout


def layout_of(creation: CreateTable, target: DeltaTarget) -> Layout:
    """Return the layout of a table to be made; made anew, it has the one that it had.

    :raises ConfigurationError: there is no such table.
    """
    if creation.layout:
        return Layout.from_json(creation.layout)
    if creation.role is Role.DATA:
        return new_table(creation.columns, target)
    return Layout(created(creation.columns))


def demand_fit(given: Mapping[str, SparkType], target: DeltaTarget, layout: Layout) -> None:
    """Compare the query's columns with the table's, as it is.

    :raises ConfigurationError: with all problems.
    """
    if problems := problems_of(given, target, layout, layout.columns):
        raise ConfigurationError(f'table "{target.path}" does not fit the query', problems)


def problems_of(
    given: Mapping[str, SparkType], target: DeltaTarget, layout: Layout, table: Mapping[str, Column]
) -> list[Problem]:
    """Compare the query's columns with the table's, and return all that does not fit.

    :param layout: as it is.
    :param table: its columns, as they are or as they will be.
    """
    names = layout.rules.filled(written(list(given), target.columns))
    problems = [*_missing_in_query(given, target), *missing_in_table(names, table)]
    types = {field["name"]: field["type"] for field in layout.fields}
    for name in names:
        if name not in given or name not in table:
            continue
        if (problem := of_type(given[name], table[name])) is not None:
            problems.append(problem)
            continue
        for path in required_inside(types.get(name, ""), name):
            what = f"{path} takes no null, which no query can promise"
            problems.append(Problem(f"column {name!r}", what, "copy the table without that NOT NULL"))
    problems += [*_of_partitions(layout.partitioned_by, layout), *_of_partitioning(names, target, layout)]
    return [*problems, *_of_key(target, layout)]


def compare(given: Mapping[str, SparkType], target: DeltaTarget, layout: Layout) -> SchemaDiff:
    """Return what makes a table that is there fit the query, or why nothing does."""
    fixed = {*target.key, *layout.partitioned_by}
    types = DeltaTypes(has_features=needs_features(layout.fields))
    table = Evolving(target.path, layout.columns, fixed, target.may_change, types)
    steps = table.steps(given, target.columns)
    problems = problems_of(given, target, layout, table.after(steps))
    return table.judged(given, target.columns, steps, problems)


def _missing_in_query(given: Mapping[str, SparkType], target: DeltaTarget) -> Iterator[Problem]:
    named = {"columns": target.columns or (), "key": target.key, "partition_by": target.partition_by}
    return missing_in_query(given, {f"{_OPTION}.{option}": names for option, names in named.items()})


def _of_each(columns: Mapping[str, SparkType]) -> Iterator[Problem]:
    for name, kind in columns.items():
        try:
            created({name: kind})
        except UnfitError as unfit:
            yield Problem("", str(unfit), unfit.hint)


def _of_partitions(by: Sequence[str], layout: Layout) -> Iterator[Problem]:
    for name in by:
        column = layout.columns.get(name)
        if column is not None and not can_partition(column.kind):
            what = f"a partition of {name!r}, which is {column.shown}, would not read as what was written"
            yield Problem(f"{_OPTION}.partition_by", what, f"partition by a date or a text of {name}")
    if by and set(by) >= layout.columns.keys():
        yield Problem(f"{_OPTION}.partition_by", "no column is left for the files", "leave one out")


def _of_partitioning(names: Sequence[str], target: DeltaTarget, layout: Layout) -> Iterator[Problem]:
    for name in layout.partitioned_by:
        if name not in names:
            what = f"the table is partitioned by {name!r}, which the query does not give"
            yield Problem(_OPTION, what, "add it to the query")
        if target.mode is Mode.UPSERT and name not in target.key:
            what = f"the table is partitioned by {name!r}: a row could not replace one of another partition"
            yield Problem(f"{_OPTION}.key", what, f"add {name!r} to the key")


def _of_key(target: DeltaTarget, layout: Layout) -> Iterator[Problem]:
    return of_key_types(f"{_OPTION}.key", target.key, layout.columns)
