"""Do the columns of a query fit the table? All that does not is told at once, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.layout import Layout
from airflow_provider_sinks.connectors.iceberg.partitions import PartitionTerm, partition_spec
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.types import (
    columns_of,
    created,
    required_inside,
)
from airflow_provider_sinks.connectors.iceberg.widening import ICEBERG_TYPES
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
from airflow_provider_sinks.connectors.table_format.types import NOT_EQUAL_TO_ITSELF, Column, SparkType
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.evolution import SchemaDiff
from airflow_provider_sinks.core.spec.problems import UnfitError

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

_OPTION = "target.iceberg"
_NAME_OF_A_PARTITION = "a field of the table's partitioning, of now or of before, has this name"
_NAME_OF_A_PART = "with its dot it would be one with a part of another column"


def demand_named(given: Mapping[str, SparkType], target: IcebergTarget) -> None:
    """See that the query gives the columns that the spec names.

    :raises ConfigurationError: with all problems.
    """
    if problems := list(_missing_in_query(given, target)):
        raise ConfigurationError(f'table "{target.table}" does not fit the query', problems)


def new_table(given: Mapping[str, SparkType], target: IcebergTarget) -> Schema:
    """Return the schema of the table that will be made from the types of a query.

    :raises ConfigurationError: there is no such table.
    """
    problems = [*_missing_in_query(given, target)]
    columns = {name: given[name] for name in written(list(given), target.columns) if name in given}
    for name, kind in columns.items():
        try:
            created({name: kind})
        except UnfitError as unfit:
            problems.append(Problem("", str(unfit), unfit.hint))
    if not problems:
        schema = created(columns)
        problems += [
            *_of_partitions(target, schema),
            *of_key_types(f"{_OPTION}.key", target.key, columns_of(schema)),
        ]
        if not problems:
            return created(columns, target.key)
    raise ConfigurationError(f'table "{target.table}" cannot be made from the query', problems)


def layout_of(creation: CreateTable, target: IcebergTarget) -> tuple[Schema, PartitionSpec]:
    """Return schema and partitioning of a table to be made; made anew, it has those that it had.

    :raises ConfigurationError: there is no such table.
    """
    if creation.layout:
        return Layout.from_json(creation.layout).read()
    is_data = creation.role is Role.DATA
    schema = new_table(creation.columns, target) if is_data else created(creation.columns)
    return schema, partition_spec(creation.partition_by, schema)


def demand_fit(
    given: Mapping[str, SparkType], target: IcebergTarget, schema: Schema, spec: PartitionSpec
) -> None:
    """Compare the query's columns with the table's, as it is.

    :raises ConfigurationError: with all problems.
    """
    if problems := problems_of(given, target, schema, spec, columns_of(schema)):
        raise ConfigurationError(f'table "{target.table}" does not fit the query', problems)


def problems_of(
    given: Mapping[str, SparkType],
    target: IcebergTarget,
    schema: Schema,
    spec: PartitionSpec,
    table: Mapping[str, Column],
) -> list[Problem]:
    """Compare the query's columns with the table's, and return all that does not fit.

    :param schema: as it is.
    :param table: its columns, as they are or as they will be.
    """
    problems = [
        *_missing_in_query(given, target),
        *missing_in_table(written(list(given), target.columns), table),
    ]
    for name in written(list(given), target.columns):
        if name in given and name in table:
            problems += _of_column(given[name], table[name], schema)
    return [*problems, *_of_partitioning(given, target, schema, spec), *_of_key(target, schema, spec)]


def compare(
    given: Mapping[str, SparkType],
    target: IcebergTarget,
    schema: Schema,
    spec: PartitionSpec,
    older: Iterable[PartitionSpec] = (),
) -> SchemaDiff:
    """Return what makes a table that is there fit the query, or why nothing does.

    :param older: other partitionings that the table had: Iceberg keeps the names of their fields.
    """
    parts = {str(schema.find_column_name(field.source_id)).partition(".")[0] for field in spec.fields}
    fixed, columns = {*target.key, *parts}, columns_of(schema)
    taken = {name.lower(): _NAME_OF_A_PART for name in schema.column_names if name not in columns}
    taken |= {field.name.lower(): _NAME_OF_A_PARTITION for one in (spec, *older) for field in one.fields}
    table = Evolving(target.table, columns, fixed, target.may_change, ICEBERG_TYPES, taken)
    steps = table.steps(given, target.columns)
    problems = problems_of(given, target, schema, spec, table.after(steps))
    return table.judged(given, target.columns, steps, problems)


def _missing_in_query(given: Mapping[str, SparkType], target: IcebergTarget) -> Iterator[Problem]:
    by = tuple(PartitionTerm.parse(text).column for text in target.partition_by)
    named = {"columns": target.columns or (), "key": target.key, "partition_by": by}
    return missing_in_query(given, {f"{_OPTION}.{option}": names for option, names in named.items()})


def _of_column(given: SparkType, column: Column, schema: Schema) -> Iterator[Problem]:
    if (problem := of_type(given, column)) is not None:
        yield problem
        return
    kept = next((field for field in schema.fields if field.name == column.name), None)
    for path in required_inside(kept.field_type, column.name) if kept is not None else ():
        hint = f"ALTER TABLE ... ALTER COLUMN {path} DROP NOT NULL"
        yield Problem(f"column {column.name!r}", f"{path} takes no null, which no query can promise", hint)


def _of_partitioning(
    given: Mapping[str, SparkType], target: IcebergTarget, schema: Schema, spec: PartitionSpec
) -> Iterator[Problem]:
    names = written(list(given), target.columns)
    for field in spec.fields:
        source = str(schema.find_column_name(field.source_id))
        kind = str(schema.find_type(field.source_id))
        if str(field.transform) == "identity" and kind in NOT_EQUAL_TO_ITSELF:
            what = (
                f"the table is partitioned by {source!r}, which is {kind}: NaN is no partition, and 0 is two"
            )
            yield Problem(_OPTION, what, f"ALTER TABLE ... DROP PARTITION FIELD {field.name}")
        if source not in names and source.partition(".")[0] not in names:
            what = f"the table is partitioned by {source!r}, which the query does not give"
            yield Problem(_OPTION, what, "add it to the query")


def _of_key(target: IcebergTarget, schema: Schema, spec: PartitionSpec) -> Iterator[Problem]:
    if target.mode is not Mode.UPSERT:
        return
    yield from of_key_types(f"{_OPTION}.key", target.key, columns_of(schema))
    for field in spec.fields:
        source = schema.find_column_name(field.source_id)
        if source not in target.key:
            what = f"the table is partitioned by {source!r}: a row could not replace one of another partition"
            yield Problem(f"{_OPTION}.key", what, f"add {source!r} to the key")


def _of_partitions(target: IcebergTarget, schema: Schema) -> Iterator[Problem]:
    for index, text in enumerate(target.partition_by):
        where, term = f"{_OPTION}.partition_by[{index}]", PartitionTerm.parse(text)
        try:
            partition_spec((term,), schema)
        except UnfitError as unfit:
            yield Problem(where, str(unfit), unfit.hint)
        if term.name != term.column and term.name in columns_of(schema):
            what = f"its field would be called {term.name!r}, as a column is"
            yield Problem(where, what, "give the column another name in the query")
