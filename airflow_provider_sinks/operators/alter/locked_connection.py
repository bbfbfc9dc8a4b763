"""A connection that is being altered, and ``<id>.before`` with its old options, as they stand now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.core.alter.backup import Holder, Mark, before_id
from airflow_provider_sinks.core.alter.changes import Change, Means
from airflow_provider_sinks.core.alter.fold import (
    alter,
    changed_columns,
    changed_names,
    fold,
    same,
    variables,
)
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.alter.standing import standing, unknown
from airflow_provider_sinks.core.alter.steps import Before, Facts, Row
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.overridden import overridden
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError
from airflow_provider_sinks.core.progress.record import utc_now
from airflow_provider_sinks.operators.alter.worker_view import environment_variable, secrets_of, view_of

if TYPE_CHECKING:
    from airflow_provider_sinks.clients.airflow_connections import ConnectionStore

_SEEN_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.5


@dataclass(frozen=True)
class Alterer:
    """Who alters.

    :param is_retry: an earlier try of the same task may have begun; never that of a dry run.
    """

    holder: Holder
    is_retry: bool


class LockedConnection:
    """One connection, as one task alters it. Each method makes one look or one request.

    :param store: the connections of Airflow's database.
    :param me: who alters it.
    """

    def __init__(self, conn_id: str, store: ConnectionStore, me: Alterer) -> None:
        self.conn_id = conn_id
        self.before_id = before_id(conn_id)
        self.mark = Mark(me.holder, utc_now())
        self.old = self.new = ConnectionFields(conn_id, "")
        self._store = store
        self._me = me

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the options that change."""
        return changed_names(self.old, self.new)

    def read(self, changes: Sequence[Change], leave: Leave) -> Facts:
        """Look at everything, and make out the old and the new options.

        The old ones are those of ``<id>.before`` once it is there: so a try after the change compares with
        where the secrets were stored for, and judges as the first one did. Variables are read as long as
        nothing is changed: after that they may be gone.

        :param leave: what the author of the DAG allows.
        :raises ConfigurationError: the changes cannot be made, or would not reach the workers.
        """
        before = self.look_before()
        with self._begun(before):
            view = self._view()
            is_ours = before in (Before.OURS, Before.UNDOING)
            self.old = replace(view_of(self.before_id), conn_id=self.conn_id) if is_ours else view
            if before is Before.THEIRS:
                return Facts(Row.OLD, before)
            if before is Before.UNDOING or not same(view, self.old):
                self.new = self._made(view, before, changes, leave)
                return Facts(self.row(), before)
        self.new = self._asked(changes, leave)
        return Facts(Row.SAME if same(self.old, self.new) else self.row(), before)

    def row(self) -> Row:
        """Return which options a worker gets now; on the way back the old ones count, were both the same."""
        view = view_of(self.conn_id)
        rows = [(Row.NEW, self.new), (Row.OLD, self.old)]
        if self.mark.undoing:
            rows.reverse()
        return next((row for row, fields in rows if same(view, fields)), Row.OTHER)

    def look_before(self) -> Before:
        """Return whose ``<id>.before`` is, and take over its mark."""
        found = self._store.find(self.before_id)
        if found is None:
            return Before.ABSENT
        mark = Mark.parse(found.description)
        self.mark = mark or Mark(Holder("", "", ""), "")
        if mark is None or mark.holder != self._me.holder:
            return Before.THEIRS
        return Before.UNDOING if mark.undoing else Before.OURS

    def keep(self) -> Before:
        """Make ``<id>.before`` with the old options, unless somebody was faster."""
        made = self._store.create(self._backup, self.mark.text(self.conn_id))
        return Before.OURS if made else self.look_before()

    def commit(self) -> Row:
        """Put the new options in force, and read back.

        :raises ConfigurationError: no worker sees them; they were taken back.
        """
        self._put(self.new)
        row = self._row_once_not(Row.OLD)
        if row is Row.OLD:
            self._put(self.old)
            what = "is not for the worker what Airflow's database says, also after it was changed there"
            raise ConfigurationError(
                f'connection "{self.conn_id}" cannot be altered through Airflow',
                [Problem("", what, "a secrets backend comes before it")],
            )
        return row

    def undo(self) -> Row:
        """Mark that the old options come back, put them in force, and read back."""
        self.mark = replace(self.mark, undoing=True)
        self._store.describe(self._backup, self.mark.text(self.conn_id))
        self._put(self.old)
        return self._row_once_not(Row.NEW)

    def forget(self) -> None:
        """Delete ``<id>.before``."""
        self._store.delete(self.before_id)

    def leave_nothing(self) -> None:
        """Delete our backup if nothing was changed; what cannot be done now a retry does."""
        with suppress(SinkError):
            if self.look_before() in (Before.OURS, Before.UNDOING) and self.row() is Row.OLD:
                self.forget()

    def _view(self) -> ConnectionFields:
        view = view_of(self.conn_id)
        row = self._store.find(self.conn_id)
        overridden(self.conn_id, environment_variable(self.conn_id), row.fields if row else None, view)
        return view

    def _asked(self, changes: Sequence[Change], leave: Leave) -> ConnectionFields:
        """Return the new options with the Variables as they are now, and note for a retry which these are."""
        names = variables(self.old, changes, leave)
        self.mark = replace(self.mark, variables=tuple(sorted(names)))
        return alter(self.old, changes, Means(secrets_of(names), leave, self._me.is_retry))

    def _made(
        self, view: ConnectionFields, before: Before, changes: Sequence[Change], leave: Leave
    ) -> ConnectionFields:
        """Return the new options as an earlier try made them; judge them unless they are to go anyway.

        A Variable that the mark does not name came into the changes since, and says itself what is asked.
        """
        if before is Before.UNDOING:
            values = unknown(changes) if same(view, self.old) else standing(view, changes)
            return fold(self.old, changes, values)
        since = variables(self.old, changes, leave).difference(self.mark.variables)
        values = standing(view, changes) | secrets_of(since)
        new = fold(self.old, changes, values)
        if same(new, view):  # else somebody edited it, and nothing of it is used
            alter(self.old, changes, Means(values, leave, self._me.is_retry))
        return new

    @contextmanager
    def _begun(self, before: Before) -> Iterator[None]:
        """Tell, of what is wrong behind our ``<id>.before``, that an alteration has begun, and the way on."""
        try:
            yield
        except ConfigurationError as error:
            if before in (Before.ABSENT, Before.THEIRS):
                raise
            held = Problem("", f"connection {self.before_id} holds the old options, since {self.mark.at}")
            raise ConfigurationError(
                f'the alteration of connection "{self.conn_id}" has begun and cannot go on',
                [*(error.problems or [Problem("", error.primary)]), held],
                "Mend that and clear this task: it goes on, or puts the old options back. If that cannot be, "
                f"see whether the options of {self.before_id} must come back, and delete it.",
            ) from None

    @property
    def _backup(self) -> ConnectionFields:
        return replace(self.old, conn_id=self.before_id)

    def _put(self, fields: ConnectionFields) -> None:
        self._store.change(fields, changed_columns(self.old, self.new))

    def _row_once_not(self, row: Row) -> Row:
        """Return which options a worker gets, as soon as they are not ``row``, or a few seconds later."""
        return look_until(
            self.row, lambda seen: seen is not row, _SEEN_SECONDS, pause_seconds=_LOOK_AGAIN_SECONDS
        )
