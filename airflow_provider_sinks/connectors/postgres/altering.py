"""Alters the table of a sink, in the transaction in which its run is announced.

Rows and progress are in one database, so altering and telling so are one commit: a launch that is killed
anywhere leaves a table that was never touched, or one that is altered and whose newest run says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.evolution import compare, is_done, may_begin, statement
from airflow_provider_sinks.connectors.postgres.layout import TREE, Layout, layout
from airflow_provider_sinks.connectors.postgres.row_errors import is_of_a_moment
from airflow_provider_sinks.connectors.postgres.session import Connection, ControlConnection
from airflow_provider_sinks.connectors.postgres.spec import PostgresTarget
from airflow_provider_sinks.connectors.table_format.types import spark_kind
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, UnavailableError
from airflow_provider_sinks.core.evolution import (
    Compatible,
    Incompatible,
    NeedsMigration,
    SchemaDiff,
    Step,
    columns_of,
)
from airflow_provider_sinks.core.progress.record import ProgressRecord

LOCK = timedelta(seconds=10)
"""How long a start waits for others to leave the table; everybody who comes meanwhile waits behind it."""
_OWNER = f"""{TREE}
    SELECT pg_has_role(c.relowner, 'USAGE') AS is_ours, quote_ident(pg_get_userbyid(c.relowner)),
           quote_ident(current_user), c.oid::regclass::text
    FROM tree JOIN pg_class c ON c.oid = tree.oid
    ORDER BY is_ours, c.oid <> to_regclass(%(table)s), c.oid LIMIT 1"""  # noqa: S608  our own words
Announce = Callable[[Connection, ProgressRecord], Callable[[], None]]


@dataclass(frozen=True)
class Owner:
    """Whose a table is. What inherits from it is altered with it: one that is not ours there counts first.

    :param is_ours: whether this login may alter it.
    :param table: which of them it is about.
    """

    is_ours: bool
    name: str
    login: str
    table: str

    @property
    def grant(self) -> str:
        """The command that lets this login alter the table."""
        return f"GRANT {self.name} TO {self.login};"


@dataclass(frozen=True)
class PostgresEvolution:
    """See :class:`.schema_parts.SchemaEvolvable`.

    :param announce: tells the run in a transaction that is open; its connection is the one that alters. What
        it returns is called when that is committed.
    """

    target: PostgresTarget
    control: ControlConnection
    announce: Announce

    def diff(self, output: Mapping[str, Any]) -> SchemaDiff:
        """Compare, and see whose the table is where it is to be altered."""
        given = {name: spark_kind(kind) for name, kind in columns_of(output).items()}
        return self.difference(given)

    def difference(self, given: Mapping[str, str]) -> SchemaDiff:
        """Compare columns with those of the table as it is now.

        :param given: Spark's types by column.
        """
        return self.control.ask(lambda connection: self._difference(connection, given))

    def apply(self, steps: Sequence[Step], record: ProgressRecord) -> None:
        """Announce and alter, both or neither. It may happen twice: what is done stays as it is."""
        self.control.ask(lambda connection: self._apply(connection, steps, record))

    def owner(self) -> Owner | None:
        """Return whose the table is; nothing where there is none."""
        return self.control.ask(lambda connection: owner_of(connection, self.target.table))

    def _difference(self, connection: Connection, given: Mapping[str, str]) -> SchemaDiff:
        table = layout(connection, self.target.table)
        found = Compatible() if table is None else compare(given, self.target, table)
        if not isinstance(found, NeedsMigration):
            return found
        owner = owner_of(connection, self.target.table)
        return found if owner is None or owner.is_ours else _not_ours(found, owner)

    def _apply(self, connection: Connection, steps: Sequence[Step], record: ProgressRecord) -> None:
        name, data = self.target.table, record.identities.data if record.identities else None
        with connection.transaction():
            announced = self.announce(connection, record)
            _lock(connection, name)
            if data is None or _oid(connection, name) != data.id:
                raise _changed(name, "It is another one than that which was looked at.")
            for step in steps:
                _do(connection, name, step)
        announced()


def owner_of(connection: Connection, table: str) -> Owner | None:
    """Return whose a table is; nothing where there is none."""
    found = connection.execute(_OWNER, {"table": identifier(table).as_string(connection)}).fetchone()
    return Owner(*found) if found else None


def _lock(connection: Connection, name: str) -> None:
    """Wait a while for everybody who uses the table: longer, and all who come would wait too."""
    milliseconds = str(int(LOCK.total_seconds() * 1000))
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [milliseconds])
    try:
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(identifier(name)))
    except psycopg.errors.LockNotAvailable as error:
        raise _in_use(name) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise _refused(name, str(error).strip(), "") from error


def _do(connection: Connection, name: str, step: Step) -> None:
    """Do a step, unless it is done."""
    table = layout(connection, name) or Layout({})
    if is_done(step, table):
        return
    if not may_begin(step, table):
        raise _changed(name, f"Column {step.name!r} is another one than a moment ago.")
    text = statement(name, step, table)
    try:
        connection.execute(text)
    except psycopg.errors.LockNotAvailable as error:  # of a table beside it, such as by a foreign key
        raise _in_use(name) from error
    except psycopg.errors.QueryCanceled as error:
        hint = (
            f"Raise transaction_timeout, or write it as the owner, at a quiet time: {text.as_string(None)};"
        )
        raise UnavailableError(f'table "{name}" was not altered in time', str(error).strip(), hint) from error
    except psycopg.Error as error:
        if is_of_a_moment(error.sqlstate or ""):
            raise
        raise _refused(name, str(error).strip(), text.as_string(None)) from error


def _oid(connection: Connection, name: str) -> str | None:
    query = "SELECT to_regclass(%s)::oid::text"
    found = connection.execute(query, [identifier(name).as_string(connection)]).fetchone()
    return found[0] if found else None


def _not_ours(found: NeedsMigration, owner: Owner) -> Incompatible:
    what = f"{owner.table} belongs to {owner.name}, and {owner.login} may not alter it"
    problems = [Problem(text, what) for text in found.statements]
    hint = f"As who owns it with its partitions and children: {'; '.join(found.statements)}; or {owner.grant}"
    return Incompatible(f'table "{found.table}" may not be altered', tuple(problems), hint)


def _in_use(name: str) -> UnavailableError:
    return UnavailableError(
        f'table "{name}" could not be altered: somebody uses it',
        f"It, or one that hangs on it, was not free within {LOCK.total_seconds():g} s; nothing was changed.",
        "The next try waits again; pg_stat_activity tells who has a transaction open.",
    )


def _refused(name: str, why: str, text: str) -> ConfigurationError:
    hint = "Remove what is in the way, or write it as the owner." if text else "Let its owner grant it."
    return ConfigurationError(f'table "{name}" cannot be altered', [Problem(text, why)], hint)


def _changed(name: str, why: str) -> UnavailableError:
    return UnavailableError(
        f'table "{name}" was altered by somebody else meanwhile', why, "The next try compares it anew."
    )
