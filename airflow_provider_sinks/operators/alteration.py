"""Does an alteration: looks, asks ``core/alter_steps.py`` what comes next, does that, and looks again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.alter_steps import (
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
from airflow_provider_sinks.core.alteration import alter, changed_columns, changed_names, same
from airflow_provider_sinks.core.alteration_mark import Holder, Mark, before_id
from airflow_provider_sinks.core.alteration_report import Scene, report, say
from airflow_provider_sinks.core.checks.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError
from airflow_provider_sinks.core.options import KafkaOptions
from airflow_provider_sinks.core.progress import utc_now
from airflow_provider_sinks.core.shadowed import shadowed
from airflow_provider_sinks.hooks.altered_connection import environment_variable, secrets_of, view_of
from airflow_provider_sinks.operators.alter_arguments import AlterOrder
from airflow_provider_sinks.operators.alteration_checks import check_connection, check_sinks
from airflow_provider_sinks.operators.dependent_sinks import DependentSinks, Outcome

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from airflow_provider_sinks.clients.airflow_connections import ConnectionStore

_CHECKS = (Step.VALIDATE, Step.PREFLIGHT)
_SEEN_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.5


@dataclass(frozen=True)
class Alterer:
    """Who alters.

    :param is_retry: an earlier try of the same task may have begun.
    """

    holder: Holder
    is_retry: bool


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
    new: Outcome | None = None
    old: Outcome | None = None


class Alteration:
    """One alteration of one connection, by one try of a task.

    Every step looks at the world when it is done and never takes its own success for granted, so a try may
    end anywhere and the next one goes on. The order of the steps is argued for in ``core/alter_steps.py``.

    :param order: what is to be done.
    :param me: who does it.
    :param store: the connections of Airflow's database.
    :param sinks: those that use the connection.
    """

    def __init__(
        self, order: AlterOrder, me: Alterer, store: ConnectionStore, sinks: DependentSinks, log: Logger
    ) -> None:
        self._order = order
        self._me = me
        self._store = store
        self._sinks = sinks
        self._log = log
        self._conn_id = order.conn_id
        self._before_id = before_id(order.conn_id)
        self._mark = Mark(me.holder, utc_now())
        self._old = self._new = ConnectionFields(order.conn_id, "")
        self._facts: Facts | None = None
        self._planned: tuple[Step, ...] = ()
        self._on_new: Outcome | None = None
        self._on_old: Outcome | None = None

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
                    self._leave_nothing()
                raise
            if step is Step.READ:
                self._say_plan()
        return self._altered(step)

    @property
    def mark(self) -> Mark:
        """Who is altering the connection."""
        return self._mark

    def _do(self, step: Step) -> None:
        if self._facts is not None:
            self._log.info("%s: %s", step, say(step, self._scene()))
        self._facts = self._actions[step]()

    @property
    def _actions(self) -> Mapping[Step, Callable[[], Facts]]:
        return {
            Step.READ: self._read,
            Step.VALIDATE: self._validate,
            Step.PREFLIGHT: self._preflight,
            Step.KEEP: self._keep,
            Step.COMMIT: self._commit,
            Step.WATCH: self._watch,
            Step.UNDO: self._undo,
            Step.WATCH_OLD: self._watch_old,
            Step.FORGET: self._forget,
        }

    @property
    def _known(self) -> Facts:
        assert self._facts is not None  # noqa: S101  every step but the first comes after it
        return self._facts

    def _read(self) -> Facts:
        view = view_of(self._conn_id)
        row = self._store.find(self._conn_id)
        shadowed(self._conn_id, environment_variable(self._conn_id), row.fields if row else None, view)
        before = self._look_before()
        self._old = view
        if before is Before.THEIRS:
            return Facts(Row.OLD, before)
        if before is not Before.ABSENT:
            self._old = replace(view_of(self._before_id), conn_id=self._conn_id)
        changes = self._order.changes
        self._new = alter(self._old, changes, secrets_of(changes), is_repeated=self._me.is_retry)
        if before is Before.ABSENT and same(self._old, self._new):
            return Facts(Row.SAME, before)
        return Facts(self._row(view), before)

    def _validate(self) -> Facts:
        check_connection(self._new, self._log)
        return after(Step.VALIDATE, self._known)

    def _preflight(self) -> Facts:
        check_sinks(self._sinks, self._new, self._log)
        return after(Step.PREFLIGHT, self._known)

    def _keep(self) -> Facts:
        backup = replace(self._old, conn_id=self._before_id)
        made = self._store.create(backup, self._mark.text(self._conn_id))
        return replace(self._known, before=Before.OURS if made else self._look_before())

    def _commit(self) -> Facts:
        """Compare again, change, read back.

        Airflow has no comparison of its own: between this one and the request a person may still edit.
        """
        self._sinks.note_before(self._change)
        row = self._row(view_of(self._conn_id))
        if row is not Row.OLD:
            return replace(self._known, row=row)
        self._put(self._new)
        row = self._row_once_not(Row.OLD)
        if row is Row.OLD:
            self._put(self._old)
            what = "is not for the worker what Airflow's database says, also after it was changed there"
            raise ConfigurationError(
                f'connection "{self._conn_id}" cannot be altered through Airflow',
                [Problem("", what, "a secrets backend comes before it")],
            )
        if self._order.wishes.restart:
            self._sinks.note_after(self._change)
        return replace(self._known, row=row)

    def _watch(self) -> Facts:
        self._on_new = self._wait(self._change, self._new, Row.NEW)
        watch = Watch.FAILED if self._on_new.missing else Watch.BACK
        return replace(self._known, watch=watch, row=self._row(view_of(self._conn_id)))

    def _undo(self) -> Facts:
        """Mark that the old options come back, and put them back, unless somebody edited meanwhile."""
        self._sinks.note_before_undo(self._change, self._undo_change)
        row = self._row(view_of(self._conn_id))
        if row is not Row.NEW:
            return replace(self._known, row=row)
        backup = replace(self._old, conn_id=self._before_id)
        self._mark = replace(self._mark, undoing=True)
        self._store.describe(backup, self._mark.text(self._conn_id))
        self._put(self._old)
        row = self._row_once_not(Row.NEW)
        self._sinks.note_after(self._undo_change)
        return replace(self._known, before=Before.UNDOING, row=row)

    def _watch_old(self) -> Facts:
        self._on_old = self._wait(self._undo_change, self._old, Row.OLD)
        return replace(self._known, watched_old=True, row=self._row(view_of(self._conn_id)))

    def _forget(self) -> Facts:
        self._store.delete(self._before_id)
        return after(Step.FORGET, self._known)

    def _put(self, fields: ConnectionFields) -> None:
        self._store.change(fields, changed_columns(self._old, self._new))

    def _look_before(self) -> Before:
        found = self._store.find(self._before_id)
        if found is None:
            return Before.ABSENT
        mark = Mark.parse(found.description)
        if mark is None:
            self._mark = Mark(Holder("", "", ""), "")
            return Before.THEIRS
        self._mark = mark
        if mark.holder != self._me.holder:
            return Before.THEIRS
        return Before.UNDOING if mark.undoing else Before.OURS

    def _row(self, view: ConnectionFields) -> Row:
        if same(view, self._new):
            return Row.NEW
        return Row.OLD if same(view, self._old) else Row.OTHER

    def _row_once_not(self, row: Row) -> Row:
        """Return which options a worker gets, as soon as they are not ``row``, or a few seconds later."""
        deadline = time.monotonic() + _SEEN_SECONDS
        while (seen := self._row(view_of(self._conn_id))) is row and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_SECONDS)
        return seen

    def _leave_nothing(self) -> None:
        """Delete our backup if nothing was changed; what cannot be done now a retry does."""
        with suppress(SinkError):
            is_ours = self._look_before() in (Before.OURS, Before.UNDOING)
            if is_ours and self._row(view_of(self._conn_id)) is Row.OLD:
                self._store.delete(self._before_id)

    @property
    def _change(self) -> str:
        return self._mark.at

    @property
    def _undo_change(self) -> str:
        return f"undo_{self._mark.at}"

    def _wait(self, change: str, fields: ConnectionFields, row: Row) -> Outcome:
        options = fields.options()
        kafka = options if isinstance(options, KafkaOptions) else None

        def stands() -> bool:
            return self._row(view_of(self._conn_id)) is row

        return self._sinks.wait(change, kafka, self._order.watch_seconds, stands)

    def _say_plan(self) -> None:
        self._planned = plan(self._known, self._order.wishes)
        if self._planned:
            scene, wishes = self._scene(), self._order.wishes
            self._log.info("connection %s:\n%s", self._conn_id, report(self._planned, scene, wishes))

    def _scene(self) -> Scene:
        return Scene(
            conn_id=self._conn_id,
            before_id=self._before_id,
            changed=changed_names(self._old, self._new),
            dependents=self._sinks.seen,
            watch_seconds=self._order.watch_seconds,
        )

    def _altered(self, end: End | None) -> Altered:
        changed = changed_names(self._old, self._new)
        return Altered(end, self._planned, changed, self._on_new, self._on_old)
