"""Whose turn it is to change the progress, and what it becomes. Pure: the state of a table in, the next out.

Each function is asked again for each attempt, with the state that was loaded for it. What it returns is
committed by compare-and-set on just that load (:meth:`.format.TableFormat.publish`). So looking who is in
force and committing are one act: whoever was fenced in between finds another current snapshot, loads again,
and is told here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from airflow_provider_sinks.connectors.table_format.state import Pending, Place, Standing, State
from airflow_provider_sinks.core.errors import FencedError, RefusedError
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord

Reached: TypeAlias = tuple[int, int, int]
"""Generation, epoch, and the number of the snapshot that came with the newest record: none of it is ever less
behind a newer start."""
NOWHERE: Reached = (0, 0, 0)


def reached(state: State | None) -> Reached:
    """Return how far a table is."""
    if state is None:
        return NOWHERE
    history = state.history
    return history.generation, history.epoch, state.at.sequence if state.at else 0


def taken(state: State | None, run: str) -> State | None:
    """Return the state with a run in force; nothing where it is already.

    Whoever fences last is in force.
    """
    state = state or State()
    return None if state.run == run else replace(state, run=run)


def announced(
    sink: str,
    run: str,
    state: State | None,
    standing: Standing,
    *,
    record: ProgressRecord,
    at: Place,
    known: Reached,
) -> State | None:
    """Return the state with the driver's record; nothing where it stands there.

    A table without a state was made a moment ago, by this start or for it. Of two first starts the second
    finds the state of the first.

    :param standing: on the snapshot of the state. Where the table has left it, a person has agreed to that.
    :param known: how far this run knows the table to be.
    :raises FencedError: a newer run is in force.
    :raises RefusedError: an older one is.
    """
    if state is None:
        return State(run).having(DRIVER, record, at)
    demand_in_force(sink, state, run, known)
    if state.records.get(DRIVER) == record:
        return None
    if standing is Standing.LEFT and state.at is not None:
        state = replace(state, lacks=state.at.snapshot)
    return state.having(DRIVER, record, at)


def published(
    sink: str,
    run: str,
    state: State | None,
    standing: Standing,
    *,
    record: ProgressRecord,
    at: Place,
    told: ProgressRecord | None,
    known: Reached,
) -> State | None:
    """Return the state with the record of an epoch; nothing where it is committed already.

    :param told: the epoch whose dead letters are known to be in their table.
    :param known: how far this run knows the table to be.
    :raises FencedError: a newer run, or a later epoch, is in force.
    :raises RefusedError: the table does not stand on what was committed before, or dead letters of an
        epoch before would be forgotten: only this state names them.
    """
    demand_in_force(sink, state, run, known)
    assert state is not None  # noqa: S101  nobody is in force there
    if state.epoch == record:
        return None
    newest, order = state.history, (record.generation, record.epoch)
    follows = newest.generation, newest.epoch + 1
    if order > follows:
        raise _rolled_back(sink, state, run)
    if order < follows:
        raise FencedError(
            f'epoch {record.epoch} of sink "{sink}" does not follow epoch {newest.epoch}',
            "Somebody else has committed, or this is long done.",
        )
    if standing is Standing.LEFT and state.at is not None:
        raise RefusedError(
            f'the table of sink "{sink}" was rolled back, or begun anew, while the sink ran',
            f"Snapshot {state.at.snapshot}, of epoch {newest.epoch}, is no ancestor of the current one.",
            "Start the sink again: it says what can be done.",
        )
    if state.pending is not None and state.pending.record != told:
        raise RefusedError(
            f'dead letters of epoch {state.pending.record.epoch} of sink "{sink}" are not in their table yet',
            "Their rows are committed; the next epoch would forget them.",
            "Start the sink again: it publishes them first.",
        )
    return state.having(SINGLE_WRITER, record, at)


def with_dead_letters(state: State, pending: Pending) -> State:
    """Return the state with dead letters to be published; without any, nothing is to be done any more."""
    return replace(state, pending=pending if pending.stages else None)


def named(sink: str, run: str, state: State | None, pending: Pending, now: Pending) -> State | None:
    """Return the state that names dead letters as they are to be published now; nothing where it does.

    :param pending: what this run has found behind its fence.
    :raises FencedError: a newer run is in force, or they are not pending any more.
    :raises RefusedError: the table knows of no run.
    """
    demand_in_force(sink, state, run, NOWHERE)
    assert state is not None  # noqa: S101  nobody is in force there
    if state.pending not in (pending, now):
        raise FencedError(
            f'dead letters of epoch {pending.record.epoch} of sink "{sink}" are not pending any more',
            "Somebody else has published them, or names them by other stages.",
        )
    return None if state.pending == now else replace(state, pending=now)


def demand_in_force(sink: str, state: State | None, run: str, known: Reached) -> None:
    """See that a run is in force.

    :param known: how far this run knows the table to be.
    :raises FencedError: a newer run is.
    :raises RefusedError: an older one is again, or the table knows of none: it was put back, is another one,
        or somebody has removed all of it.
    """
    if state is None:
        raise RefusedError(
            f'the table of sink "{sink}" has no progress any more',
            f"Run {run} had announced itself there.",
            "Start the sink again: it says what can be done.",
        )
    if state.run != run and reached(state) < known:
        raise _rolled_back(sink, state, run)
    if state.run != run:
        raise FencedError(
            f'a newer start of sink "{sink}" took over',
            f"Run {state.run} is in force; this is run {run}.",
            "Nothing to do if the newer start is yours; else find out who runs the same sink.",
        )


def _rolled_back(sink: str, state: State, run: str) -> RefusedError:
    found = state.history
    return RefusedError(
        f'progress of sink "{sink}" was rolled back while the sink ran',
        f"This is run {run}; the table knows of run {state.run}, epoch {found.epoch} of generation "
        f"{found.generation}.",
        "Start the sink again: it says what is missing, and what can be done.",
    )
