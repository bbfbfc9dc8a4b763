"""How a reset empties a table, or removes it: only the one that was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.delta import log, observe
from airflow_provider_sinks.connectors.delta.log import LOG, DeltaVersion
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.table_format.errors import MissingError, OvertakenError
from airflow_provider_sinks.connectors.table_format.resetting import demand_looked_at
from airflow_provider_sinks.connectors.table_format.stage import answering
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.delta.tables import DeltaTables


def reset_table(tables: DeltaTables, options: DeltaOptions, step: EmptyOutput | DeleteOutput) -> None:
    """Empty a table, or remove its folder, if it is the one that was looked at.

    :raises RefusedError: it is another one, or somebody has changed it meanwhile.
    """
    try:
        table = tables.load(step.facts.name)
    except MissingError:
        return
    demand_looked_at(step, table.id, observe.identity(tables, table))
    if isinstance(step, DeleteOutput):
        with answering(table.name):
            tables.files.delete_folder(f"{table.name}/{LOG}")
            tables.files.delete_folder(table.name)
    else:
        _empty(options, table)


def _empty(options: DeltaOptions, table: DeltaVersion) -> None:
    if not observe.size_bytes(table):
        return
    try:
        log.commit(options, table.name, lambda: table.raw.delete(commit_properties=log.once({}, {}, 0)))
    except OvertakenError as error:
        raise RefusedError(
            f'table "{table.name}" was changed while it was emptied',
            str(error),
            "Look again before anything is deleted.",
        ) from error
