"""What is seen of a sink's tables: facts, without judgement. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_sinks.connectors.delta.features import unfit
from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.places import is_local, system_of
from airflow_provider_sinks.connectors.delta.tables import DeltaTables
from airflow_provider_sinks.connectors.delta.types import can_partition, columns_of
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.letters import unfit_for_letters
from airflow_provider_sinks.connectors.table_format.state import flawed
from airflow_provider_sinks.connectors.table_format.state import identity as state_identity
from airflow_provider_sinks.connectors.table_format.types import Column
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressFormatError


def look(
    tables: DeltaTables, name: str, role: Role, *, with_size: bool = False
) -> tuple[ResourceFacts, DeltaVersion | None]:
    """Return which table it is now, and whether it can be written; and the table, where it could be loaded.

    :param with_size: also how large it is, for which all of its files are looked through.
    :raises UnavailableError: the storage did not answer.
    """
    facts = ResourceFacts(name, Existence.UNKNOWN, system=system_of(name), kind=ResourceKind.TABLE)
    try:
        table = tables.load(name)
    except MissingError:
        return replace(facts, existence=Existence.MISSING), None
    except HiddenError as error:
        return replace(facts, reason=str(error)), None
    if is_local(name) and (reason := _obstacle(name)):
        return replace(facts, reason=reason, grant=f"chmod -R u+rwX {name}"), None
    found = replace(
        facts,
        existence=Existence.PRESENT,
        id=identity(tables, table),
        size_bytes=size_bytes(table) if with_size else 0,
        unfit=_unfit(tables, table, role),
    )
    return found, table


def identity(tables: DeltaTables, table: DeltaVersion) -> str:
    """Return which table it is: its id, and what of ours is not in it any more."""
    try:
        state = tables.state(table)
    except ProgressFormatError:
        return table.id
    return state_identity(table.id, state, tables.standing(table, state.at if state else None))


def history(tables: DeltaTables, table: DeltaVersion | None) -> History:
    """Return the progress that stands in a table."""
    if table is None:
        return NO_HISTORY
    try:
        state = tables.state(table)
    except ProgressFormatError as error:
        return flawed(error)
    return state.history if state is not None else NO_HISTORY


def progress_place(data: ResourceFacts, table: DeltaVersion | None) -> ResourceFacts:
    """Return the place of the progress: the data table, whatever became of its rows."""
    return replace(data, id=table.id if table is not None else "", unfit=None, size_bytes=0)


def size_bytes(table: DeltaVersion) -> int:
    """Return how large the files of a table are; 0 only where it certainly has none."""
    return sum(size or 1 for size in table.raw.get_add_actions().column("size_bytes").to_pylist())


def _obstacle(name: str) -> str:
    """Return why a folder cannot be written from here; delta-rs tells it only when it commits."""
    import os

    if os.access(name, os.W_OK | os.X_OK) and os.access(f"{name}/_delta_log", os.W_OK | os.X_OK):
        return ""
    return f"{name} cannot be written from here"


def _unfit(tables: DeltaTables, table: DeltaVersion, role: Role) -> Unfit | None:
    replaces = role is Role.DATA and not tables.keeps_staged
    found = unfit(table, replaces_rows=replaces, has_rules=role is Role.DATA)
    if found is not None or role is not Role.DEAD_LETTER:
        return found
    repair = "Name a table that is not there; this one is partitioned by"
    columns = columns_of(table.fields)
    return unfit_for_letters(columns, table.partitioned_by, repair) or _unreadable(columns, table)


def _unreadable(columns: Mapping[str, Column], table: DeltaVersion) -> Unfit | None:
    """Return why letters would not be read as they are: a partition of bytes or texts, which may be empty."""
    for name in table.partitioned_by:
        if columns[name].kind == "string" or not can_partition(columns[name].kind):
            return Unfit(
                f"is partitioned by {name}",
                f"A partition of {columns[name].shown} does not read as what was written.",
                "Name a table that is not there: the sink makes it.",
            )
    return None
