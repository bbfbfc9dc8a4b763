"""A Postgres database: what this user may read there, and whether the server lets it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.parts import PostgresLookup

OLDEST = 12
_UNLIMITED = "0"


@dataclass(frozen=True)
class TableFacts:
    """What was seen of a table.

    :param schema: where it stands; empty if there is none of this name.
    :param may_enter: USAGE on its schema.
    :param may_read: SELECT on it.
    :param columns: by name, with their types.
    :param row_security: whether policies may hide rows from this user.
    :param size_bytes: on disk; 0 for views.
    :param others: names of tables that there are, for a hint.
    """

    schema: str = ""
    may_enter: bool = False
    may_read: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    row_security: bool = False
    size_bytes: int = 0
    others: Collection[str] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class DatabaseFacts:
    """What was seen of a database.

    :param version: such as ``18.1``.
    :param settings: of the server, for this user.
    :param tables: by the name that the lookup has.
    """

    database: str
    user: str
    version: str
    in_recovery: bool
    settings: Mapping[str, str]
    tables: Mapping[str, TableFacts]
    seconds: float = 0.0


def database_checks(conn_id: str, facts: DatabaseFacts, lookups: Sequence[PostgresLookup]) -> Iterator[Check]:
    """Judge a database, and the tables that a sink reads there."""
    checks = Checks(conn_id, Family.DATABASE)
    yield _version(checks, facts)
    yield _settings(checks, facts)
    for lookup in lookups:
        yield from _table(checks, facts, lookup)


def _version(checks: Checks, facts: DatabaseFacts) -> Check:
    role = ", a standby" if facts.in_recovery else ""
    detail = f'"{facts.database}" on PostgreSQL {facts.version}{role}'
    if int(facts.version.partition(".")[0]) < OLDEST:
        return checks.unknown("database", detail, f"PostgreSQL {OLDEST} and later are what is tested.")
    return checks.passes("database", detail, facts.seconds)


def _settings(checks: Checks, facts: DatabaseFacts) -> Check:
    limit = facts.settings.get("statement_timeout", _UNLIMITED)
    if limit != _UNLIMITED:
        hint = f'If a lookup takes longer: ALTER ROLE "{facts.user}" SET statement_timeout = 0'
        return checks.unknown("settings", f"statement_timeout is {limit}: it ends longer reads", hint)
    if facts.settings.get("server_encoding") not in ("UTF8", None):
        detail = f"server_encoding is {facts.settings['server_encoding']}; text is converted to UTF-8"
        return checks.unknown("settings", detail)
    return checks.passes("settings", "no limit of time, UTF-8")


def _table(checks: Checks, facts: DatabaseFacts, lookup: PostgresLookup) -> Iterator[Check]:
    table, found = lookup.table, facts.tables[lookup.table]
    if not found.schema:
        hint = nearest(table, found.others) or nearest(table.rpartition(".")[2], found.others)
        yield checks.fails(f"table {table}", "does not exist, or its schema is not in the search path", hint)
        return
    yield _granted(checks, f'USAGE on schema "{found.schema}"', found.may_enter, facts.user)
    yield _granted(checks, f"SELECT on table {table}", found.may_read, facts.user)
    yield _shape(checks, lookup, found)


def _granted(checks: Checks, right: str, held: bool, user: str) -> Check:
    if held:
        return checks.passes(right, "allowed")
    what = right.replace("on table ", "ON ").replace("on schema ", "ON SCHEMA ")
    return checks.fails(right, "denied", f'GRANT {what} TO "{user}"')


def _shape(checks: Checks, lookup: PostgresLookup, found: TableFacts) -> Check:
    name, seconds = f"table {lookup.table}", found.seconds
    missing = [column for column in lookup.columns or () if column not in found.columns]
    if missing:
        near = " ".join(filter(None, (nearest(column, found.columns) for column in missing)))
        return checks.fails(name, f"has no column {', '.join(missing)}", near, seconds)
    if found.row_security:
        detail = "row security is on: this user may see a part of the rows only"
        return checks.unknown(name, detail, "Give the user BYPASSRLS, or a policy that shows all.", seconds)
    if found.size_bytes > lookup.max_bytes:
        detail = (
            f"has {found.size_bytes:,} bytes on disk, and the lookup takes {lookup.max_bytes:,} in memory"
        )
        hint = "Name only the columns that the query needs, or raise max_bytes."
        return checks.unknown(name, detail, hint, seconds)
    return checks.passes(name, f"{len(found.columns)} columns, {found.size_bytes:,} bytes on disk", seconds)
