"""Whether a table that is there does for its role, whatever the query is. Pure: a table in, its flaw out.

Whether the columns of a query fit the data table is another question (:mod:`.fit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from airflow_provider_sinks.connectors.postgres.creation import PROGRESS_COLUMNS
from airflow_provider_sinks.connectors.postgres.layout import Layout
from airflow_provider_sinks.connectors.postgres.letter_table import unfit_for_letters
from airflow_provider_sinks.connectors.postgres.unique_indexes import key_obstacle
from airflow_provider_sinks.core.decision.facts import Role, Unfit

UNBIND = "ALTER ROLE ... BYPASSRLS, or NO FORCE ROW LEVEL SECURITY and the table's owner"
"""What lets a login write a table with policies on its rows."""
_WRITTEN_AGAIN = "A crash of the server empties it, and the rows would be written again."
_SET_ASIDE_BY_NOBODY = "A crash of the server empties it, and nobody sets its rows aside again."
_PROGRESS_KEY = ("sink", "writer")
_HOLDS_PROGRESS = Unfit(
    "holds the progress of sinks",
    "Rows in it would be taken for progress: those sinks would stop, or lose rows or write them again.",
    "Name another table.",
    is_others=True,
)


def unfit_for(role: Role, name: str, table: Layout) -> Unfit | None:
    """Return why a table does not do for a role, with the SQL that mends it; ``None`` where it does.

    :param name: with its schema.
    """
    match role:
        case Role.PROGRESS:
            return next(_flaws_of_progress(name, table), None)
        case Role.DATA:
            return _HOLDS_PROGRESS if PROGRESS_COLUMNS.keys() <= table.columns.keys() else None
        case Role.DEAD_LETTER:
            return next(_flaws_of_letters(name, table), None)
        case Role.SOURCE:
            return None
        case other:
            assert_never(other)


def elsewhere(name: str, partition: str) -> tuple[str, str]:
    """Return why a partition that another server keeps takes no rows, and what helps.

    :param name: of the whole table.
    """
    why = "that server commits by itself: where this one fails behind it, the rows are written twice"
    return why, f"ALTER TABLE {name} DETACH PARTITION {partition}"


def _flaws_of_progress(name: str, table: Layout) -> Iterator[Unfit]:
    for column in PROGRESS_COLUMNS:
        if column not in table.columns:
            yield _no_progress_table(f"has no column {column}")
        elif table.columns[column].is_generated:
            yield _no_progress_table(f"has a column {column} that Postgres generates")
    obstacle = key_obstacle(name, _PROGRESS_KEY, table.indexes)
    if obstacle is not None and not any(set(_PROGRESS_KEY) == index.columns for index in table.indexes):
        yield _no_progress_table("has another key than sink and writer")
    elif obstacle is not None:
        why = f"{obstacle.what[0].upper()}{obstacle.what[1:]}."
        yield Unfit("cannot be written by its key", why, f"{obstacle.repair};")
    yield from _flaws_of_keeping(name, table, _WRITTEN_AGAIN)
    for trigger in table.triggers.values():
        why = "What it drops, or changes of a row, looks as if somebody else had taken the sink."
        yield _with_trigger(trigger, why)
    for rule, event in table.rules.items():
        if event != "DELETE":
            why = "Whoever changes a row of it must know that it was changed."
            yield Unfit(f"has rule {rule} on {event}", why, f"DROP RULE {rule} ON {name};")


def _flaws_of_letters(name: str, table: Layout) -> Iterator[Unfit]:
    yield from _flaws_of_keeping(name, table, _SET_ASIDE_BY_NOBODY)
    if trigger := table.triggers.get("INSERT"):
        yield _with_trigger(trigger, "Nobody would see that it drops a letter, and the row would be lost.")
    if (unfit := unfit_for_letters(name, table.columns)) is not None:
        yield unfit


def _with_trigger(trigger: str, why: str) -> Unfit:
    return Unfit(f"has trigger {trigger} before each row", why, f"DROP TRIGGER {trigger};")


def _flaws_of_keeping(name: str, table: Layout, emptied: str) -> Iterator[Unfit]:
    """Give what lets a table refuse or lose rows that count as kept.

    :param emptied: what a crash of the server means where it is unlogged.
    """
    if table.is_unlogged:
        yield Unfit("is unlogged", emptied, f"ALTER TABLE {name} SET LOGGED;")
    if part := table.unlogged_partition:
        yield Unfit(f"has an unlogged partition, {part}", emptied, f"ALTER TABLE {part} SET LOGGED;")
    if part := table.foreign_partition:
        why, repair = elsewhere(name, part)
        what = f"has a partition on another server, {part}"
        yield Unfit(what, f"{why[0].upper()}{why[1:]}.", f"{repair};")
    if table.has_row_security:
        why = "Policies decide which of its rows this login sees and writes."
        yield Unfit("is under row-level security for this login", why, f"{UNBIND}.")


def _no_progress_table(what: str) -> Unfit:
    return Unfit(
        what,
        "So it is no progress table: something else has its name.",
        "Name another table as progress: the sink makes it.",
    )
