"""How a reset empties a table, or removes it: only the one that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.delta import log, observe
from airflow_provider_sinks.connectors.delta.log import LOG, DeltaVersion
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.delta.progress import FOLDER
from airflow_provider_sinks.connectors.table_format.errors import MissingError, OvertakenError
from airflow_provider_sinks.connectors.table_format.resetting import demand_looked_at
from airflow_provider_sinks.connectors.table_format.stage import answering
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.delta.tables import DeltaTables


def reset_table(
    tables: DeltaTables,
    options: DeltaOptions,
    step: EmptyOutput | DeleteOutput,
    demand_holds: Callable[[str, DeltaVersion], None],
) -> None:
    """Empty a table, or remove its folder, if it is the one that was looked at.

    :param demand_holds: sees that this run is in force in a table, as it was loaded.
    :raises FencedError: a newer run is.
    :raises RefusedError: it is another one, or somebody has changed it meanwhile.
    """
    try:
        table = tables.load(step.facts.name)
    except MissingError:
        return
    demand_looked_at(step, table.id, observe.identity(tables, table))
    demand_holds(step.facts.name, table)
    if isinstance(step, DeleteOutput):
        _demand_alone(tables, table)
        with answering(table.name):
            tables.files.delete_folder(f"{table.name}/{LOG}")
            tables.files.delete_folder(table.name)
    else:
        _empty(options, table)


def _demand_alone(tables: DeltaTables, table: DeltaVersion) -> None:
    """See that nothing of anybody else lies in the folder of a table.

    :raises RefusedError: it does.
    """
    with answering(table.name):
        below = [path.removeprefix(f"{table.name}/") for path in tables.files.below(table.name)]
    inner = {path.partition(f"/{LOG}/")[0] for path in below if f"/{LOG}/" in path}
    others = {path.split("/")[1] for path in below if path.startswith(f"{FOLDER}/")} - {tables.sink}
    if inner or others:
        whose = f"table {min(inner)}" if inner else f'the progress of sink "{min(others)}"'
        raise RefusedError(
            f'table "{table.name}" is not removed: its folder holds more than its own',
            f"There is {whose}.",
            "Have it emptied instead of made anew, or move the other one first.",
        )


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
