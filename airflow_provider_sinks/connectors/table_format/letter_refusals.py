"""What is told of dead letters that are pending, and that their table does not take."""

from __future__ import annotations

from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError, HiddenError
from airflow_provider_sinks.connectors.table_format.state import Pending
from airflow_provider_sinks.core.errors import RefusedError


def gone(sink: str, pending: Pending) -> RefusedError:
    """Return that the files are not there any more."""
    return RefusedError(
        f"dead letters of {_epoch(sink, pending)} are gone",
        "Their rows are committed; what was staged of them was removed before it was published.",
        "Bring the files back, or name another table in dead_letter: it begins without them.",
    )


def of_other_columns(sink: str, pending: Pending, error: ElsewhereError) -> RefusedError:
    """Return that their own table is unlike what it was."""
    return RefusedError(
        f"dead letters of {_epoch(sink, pending)} were staged for a table of other columns",
        f'Table "{pending.table}" was altered since, or is another one. {error}',
        "Name another table in dead_letter that is not there: the sink makes it.",
    )


def of_another_partitioning(sink: str, pending: Pending, table: str | None) -> RefusedError:
    """Return that a table is partitioned in another way than the one that they were staged for."""
    return RefusedError(
        f"dead letters of {_epoch(sink, pending)} were staged for a table of another partitioning",
        f'Table "{table}" has no such partitioning: it is another one.',
        "Drop it and let the sink make it, or name another table in dead_letter that is not there.",
    )


def nobody_can_tell(sink: str, pending: Pending, error: HiddenError) -> RefusedError:
    """Return that they may be in a table that is hidden."""
    return RefusedError(
        f'dead letters of {_epoch(sink, pending)} may be in table "{pending.table}", which is hidden',
        f"Whoever set them aside may have published them there, or may still do so. {error}",
        "Let the login see and change that table, and start the sink again.",
    )


def no_table(sink: str, pending: Pending) -> RefusedError:
    """Return that the spec has no table for them any more, or one that cannot take them."""
    return RefusedError(
        f"dead letters of {_epoch(sink, pending)} have no table any more",
        "Their rows are committed, and the spec named a table for them when they were staged.",
        f"Write {pending.table or 'the table that it was'} as dead_letter and start the sink once.",
    )


def _epoch(sink: str, pending: Pending) -> str:
    return f'epoch {pending.record.epoch} of sink "{sink}"'
