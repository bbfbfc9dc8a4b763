"""Dead letters on their way into their table, and what is said where that refuses one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection, StatementError
from airflow_provider_sinks.connectors.postgres.factory import TablePlan
from airflow_provider_sinks.connectors.postgres.known_tables import KnownTable
from airflow_provider_sinks.core.errors import SinkError


def copy_letters(connection: CopyConnection, plan: TablePlan, letters: pa.RecordBatch) -> None:
    """Copy letters into the table of the plan.

    :raises RejectedRowError: it refuses one, and would do so again: there is nowhere else to go.
    :raises JobFailedError: it was altered while the sink ran; the next start compares it.
    :raises StatementError: for another reason than a row.
    """
    assert plan.dead_letter is not None  # noqa: S101  the runtime stops before it gives dead letters
    try:
        connection.copy(plan.dead_letter, letters)
    except StatementError as error:
        if not error.is_of_a_row:
            raise
        connection.run("ROLLBACK")
        raise _refusal(connection, plan, plan.dead_letter, error.message) from error


def _refusal(connection: CopyConnection, plan: TablePlan, table: str, why: str) -> SinkError:
    sink = plan.circumstances.sink
    known = KnownTable(table, "", plan.shapes.get(table, {}))
    oid, shape = connection.ask(known.look())[0]
    altered = replace(known, oid=oid).misfit(oid, shape, sink)
    return altered or RejectedRowError(
        f'table "{table}" does not take a dead letter of sink "{sink}"',
        f"Postgres says: {why}.",
        "Drop what refuses it, such as a constraint or a trigger: a letter holds whatever its record has. "
        "Or name another table in `dead_letter`: the sink makes it.",
    )
