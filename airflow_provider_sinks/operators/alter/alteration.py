"""Does an alteration: looks, asks ``core/alter/steps.py`` what comes next, does that, and looks again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from airflow_provider_sinks.core.alter.backup import Mark
from airflow_provider_sinks.core.alter.report import Scene, report, say
from airflow_provider_sinks.core.alter.steps import (
    Before,
    End,
    Facts,
    Row,
    Step,
    Watch,
    after,
    next_step,
    plan,
)
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError
from airflow_provider_sinks.operators.alter.arguments import AlterOrder
from airflow_provider_sinks.operators.alter.checks import check_connection, check_sinks, demand_named
from airflow_provider_sinks.operators.alter.dependent_sinks import DependentSinks, Returns
from airflow_provider_sinks.operators.alter.locked_connection import LockedConnection

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_CHECKS = (Step.VALIDATE, Step.PREFLIGHT)


@dataclass(frozen=True)
class Altered:
    """How an alteration ended.

    :param steps: those that were planned, as they were printed.
    :param changed: the names of the options that differ.
    :param new: what became of the sinks on the new options; ``None`` when nobody waited.
    :param old: what became of them on the old options again.
    """

    end: End | None
    steps: tuple[Step, ...]
    changed: tuple[str, ...]
    new: Returns | None = None
    old: Returns | None = None


class Alteration:
    """One alteration of one connection, by one try of a task.

    Every step looks at the world when it is done and never takes its own success for granted, so a try may
    end anywhere and the next one goes on. The order of the steps is argued for in ``core/alter/steps.py``.

    :param order: what is to be done.
    :param locked: the connection.
    :param sinks: those that use the connection.
    """

    def __init__(
        self, order: AlterOrder, locked: LockedConnection, sinks: DependentSinks, log: Logger
    ) -> None:
        self._order = order
        self._locked = locked
        self._sinks = sinks
        self._log = log
        self._facts: Facts | None = None
        self._planned: tuple[Step, ...] = ()
        self._on_new: Returns | None = None
        self._on_old: Returns | None = None

    @property
    def mark(self) -> Mark:
        """Who is altering the connection."""
        return self._locked.mark

    def plan(self) -> Altered:
        """Do what has no effect, the checks too, and print the steps that a run would do."""
        self._do(Step.READ)
        self._say_plan()
        for step in self._planned:
            if step in _CHECKS:
                self._do(step)
        following = next_step(self._facts, self._order.wishes)
        return self._altered(following if isinstance(following, End) else None)

    def run(self) -> Altered:
        """Do all steps.

        :raises SinkError: a step could not be done; if the connection was not changed yet, nothing is left.
        """
        while isinstance(step := next_step(self._facts, self._order.wishes), Step):
            try:
                self._do(step)
            except SinkError as error:
                if step in _CHECKS or not error.retryable:
                    self._locked.leave_nothing()
                raise
            if step is Step.READ:
                self._say_plan()
        return self._altered(step)

    def _do(self, step: Step) -> None:
        if self._facts is not None:
            self._log.info("%s: %s", step, say(step, self._scene()))
        self._carry_out(step)

    def _carry_out(self, step: Step) -> None:
        match step:
            case Step.READ:
                self._facts = self._read()
            case Step.VALIDATE:
                self._facts = self._validate()
            case Step.PREFLIGHT:
                self._facts = self._preflight()
            case Step.KEEP:
                self._facts = replace(self._known, before=self._locked.keep())
            case Step.COMMIT:
                self._facts = self._commit()
            case Step.WATCH:
                self._facts = self._watch()
            case Step.UNDO:
                self._facts = self._undo()
            case Step.WATCH_OLD:
                self._facts = self._watch_old()
            case Step.FORGET:
                self._facts = self._forget()
            case _:
                assert_never(step)

    @property
    def _known(self) -> Facts:
        assert self._facts is not None  # noqa: S101  every step but the first comes after it
        return self._facts

    def _read(self) -> Facts:
        facts = self._locked.read(self._order.changes, self._order.leave)
        if facts.before is Before.ABSENT:  # else an alteration has begun, and is brought to its end
            demand_named(self._sinks, self._locked.old)
        return facts

    def _validate(self) -> Facts:
        check_connection(self._locked.new, self._log)
        return after(Step.VALIDATE, self._known)

    def _preflight(self) -> Facts:
        check_sinks(self._sinks, self._locked.old, self._locked.new, self._log)
        return after(Step.PREFLIGHT, self._known)

    def _commit(self) -> Facts:
        """Compare again, change, read back.

        Airflow has no comparison of its own: between this one and the request a person may still edit.
        """
        self._sinks.note_before(self._change)
        row = self._locked.row()
        if row is not Row.OLD:
            return replace(self._known, row=row)
        row = self._locked.commit()
        if self._order.wishes.restart:
            self._sinks.note_after(self._change)
        return replace(self._known, row=row)

    def _watch(self) -> Facts:
        self._on_new = self._wait(self._change, self._locked.new, Row.NEW)
        watch = Watch.FAILED if self._on_new.missing else Watch.BACK
        return replace(self._known, watch=watch, row=self._locked.row())

    def _undo(self) -> Facts:
        """Put the old options back, unless somebody edited meanwhile."""
        self._sinks.note_before_undo(self._change, self._undo_change)
        row = self._locked.row()
        if row is not Row.NEW:
            return replace(self._known, row=row)
        row = self._locked.undo()
        self._sinks.note_after(self._undo_change)
        return replace(self._known, before=Before.UNDOING, row=row)

    def _watch_old(self) -> Facts:
        self._on_old = self._wait(self._undo_change, self._locked.old, Row.OLD)
        return replace(self._known, watched_old=True, row=self._locked.row())

    def _forget(self) -> Facts:
        self._locked.forget()
        return after(Step.FORGET, self._known)

    def _wait(self, change: str, fields: ConnectionFields, row: Row) -> Returns:
        options: ConnectionOptions | None = None
        with suppress(ConfigurationError):  # the old ones may have been of no use before
            options = fields.options()
        return self._sinks.wait(
            change, options, self._order.watch_seconds, stands=lambda: self._locked.row() is row
        )

    @property
    def _change(self) -> str:
        return self.mark.at

    @property
    def _undo_change(self) -> str:
        return f"undo_{self.mark.at}"

    def _say_plan(self) -> None:
        self._planned = plan(self._known, self._order.wishes)
        if self._planned:
            words = report(self._planned, self._scene(), self._order.wishes)
            self._log.info("connection %s:\n%s", self._locked.conn_id, words)

    def _scene(self) -> Scene:
        locked, sinks = self._locked, self._sinks
        return Scene(
            conn_id=locked.conn_id,
            before_id=locked.before_id,
            changed=locked.changed,
            dependents=sinks.seen,
            watch_seconds=self._order.watch_seconds,
            noted=sinks.noted(self._change),
        )

    def _altered(self, end: End | None) -> Altered:
        return Altered(end, self._planned, self._locked.changed, self._on_new, self._on_old)
