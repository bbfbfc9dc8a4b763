"""How a reset empties a table, or takes it out of its catalog: only the one that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg import observe
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.table_format.errors import MissingError, OvertakenError
from airflow_provider_sinks.connectors.table_format.resetting import demand_looked_at
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput

if TYPE_CHECKING:
    from pyiceberg.table import Table


def reset_table(
    catalog: TableCatalog,
    sink: str,
    step: EmptyOutput | DeleteOutput,
    demand_holds: Callable[[str, Table], None],
) -> None:
    """Empty a table, or take it out of its catalog, if it is the one that was looked at.

    :param demand_holds: sees that this run is in force in a table, as it was loaded.
    :raises FencedError: a newer run is.
    :raises RefusedError: it is another one, or somebody has changed it meanwhile.
    """
    facts, table = observe.look(catalog, step.facts.name, sink, Role.DATA)
    if facts.existence is Existence.MISSING or table is None:
        return
    demand_looked_at(step, str(table.metadata.table_uuid), facts.id)
    demand_holds(step.facts.name, table)
    if isinstance(step, DeleteOutput):
        with suppress(MissingError):
            catalog.drop(step.facts.name)
    else:
        _empty(catalog, table)


def _empty(catalog: TableCatalog, table: Table) -> None:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.table import Transaction

    if not observe.size_bytes(table):
        return
    changes = Transaction(table, autocommit=False)
    changes.delete(AlwaysTrue())
    try:
        catalog.commit(table, changes)
    except OvertakenError as error:
        raise RefusedError(
            f'table "{".".join(table.name())}" was changed while it was emptied',
            str(error),
            "Look again before anything is deleted.",
        ) from error
