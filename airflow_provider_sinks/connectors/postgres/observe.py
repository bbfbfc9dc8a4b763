"""What is seen of a sink's tables, and of its progress. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import psycopg

from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.fitness import unfit_for
from airflow_provider_sinks.connectors.postgres.layout import Layout, layout
from airflow_provider_sinks.connectors.postgres.progress_table import Place
from airflow_provider_sinks.connectors.postgres.session import Connection
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind

_SYSTEM = """
    SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || current_database(),
           pg_is_in_recovery(), current_setting('transaction_read_only')::boolean"""
_MAY_STAGE = "SELECT quote_ident(current_database()), has_database_privilege(current_database(), 'TEMP')"
_TABLE = """
    SELECT c.oid::text, c.relkind::text, has_schema_privilege(n.oid, 'USAGE'),
           array(SELECT need FROM unnest(%(needs)s::text[]) need WHERE NOT has_table_privilege(c.oid, need)),
           CASE c.relkind WHEN 'r' THEN pg_relation_size(c.oid)
                WHEN 'p' THEN (SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(c.oid)) END
    FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
    WHERE n.nspname = %(schema)s AND c.relname = %(table)s"""
_KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
}
_TABLES = ("r", "p")


class _Obstacle(NamedTuple):
    """Why this login can write nothing here, whatever the table, and what helps."""

    reason: str
    repair: str


_STANDBY = _Obstacle(
    "the server is a read-only standby",
    "Name the primary as the host of the connection; where this one is promoted, the next try goes on.",
)
_READ_ONLY = _Obstacle(
    "default_transaction_read_only is on for this login or database",
    "ALTER ROLE <user of the connection> RESET default_transaction_read_only; or ALTER DATABASE likewise.",
)

NEEDS: Mapping[Role, tuple[str, ...]] = {
    Role.DATA: ("INSERT",),
    Role.DEAD_LETTER: ("INSERT",),
    Role.PROGRESS: ("SELECT", "INSERT", "UPDATE"),
}
"""What a login must be allowed to do with each table; a target of upserts needs more."""
NEEDS_OF_UPSERT = ("SELECT", "INSERT", "UPDATE")
NEEDS_OF_DELETE = (*NEEDS_OF_UPSERT, "DELETE")


def look(
    connection: Connection, tables: Mapping[Role, str], needs: Mapping[Role, tuple[str, ...]]
) -> dict[Role, ResourceFacts]:
    """Return which tables these are, and whether they can be written."""
    system, in_recovery, read_only = connection.execute(_SYSTEM).fetchone() or ("", False, False)
    obstacle = _STANDBY if in_recovery else (_READ_ONLY if read_only else None)
    return {
        role: _facts(connection, name, str(system), needs[role], obstacle) for role, name in tables.items()
    }


def look_to_stage(
    connection: Connection, tables: Mapping[Role, str], needs: Mapping[Role, tuple[str, ...]]
) -> dict[Role, ResourceFacts]:
    """Return the same for writers of our own, which stage rows in temporary tables."""
    seen = look(connection, tables, needs)
    return {**seen, Role.DATA: _stageable(connection, seen[Role.DATA])}


def examine(
    connection: Connection, tables: Mapping[Role, str], needs: Mapping[Role, tuple[str, ...]]
) -> dict[Role, ResourceFacts]:
    """Return the same, and whether each table does for its role."""
    seen = look_to_stage(connection, tables, needs)
    return {role: _examined(connection, role, facts) for role, facts in seen.items()}


def observe(
    connection: Connection,
    tables: Mapping[Role, str],
    needs: Mapping[Role, tuple[str, ...]],
    sink: str,
    source: ResourceFacts,
) -> Observation:
    """Return everything that the decision is made from."""
    seen = examine(connection, tables, needs)
    history, reason = _history(connection, seen[Role.PROGRESS], Place(tables[Role.PROGRESS], sink))
    return Observation(
        source=source,
        data=seen[Role.DATA],
        progress=seen[Role.PROGRESS],
        dead_letter=seen.get(Role.DEAD_LETTER),
        history=history,
        history_reason=reason,
    )


def _facts(
    connection: Connection, name: str, system: str, needs: tuple[str, ...], obstacle: _Obstacle | None
) -> ResourceFacts:
    schema, _, table = name.partition(".")
    found = connection.execute(_TABLE, {"needs": list(needs), "schema": schema, "table": table}).fetchone()
    if found is None:
        missing = ResourceFacts(name, Existence.MISSING, system, kind=ResourceKind.TABLE)
        return missing if obstacle is None else _behind(missing, obstacle)
    oid, kind, may_enter, denied, size_bytes = found
    facts = ResourceFacts(
        name, Existence.PRESENT, system, oid, size_bytes=int(size_bytes or 0), kind=ResourceKind.TABLE
    )
    facts = facts if obstacle is None else _behind(facts, obstacle)
    if kind not in _TABLES:
        return replace(facts, unfit=_no_table(_KINDS.get(kind, "something else")))
    if not may_enter:
        return _denied(facts, "USAGE", f"schema {schema}")
    return _denied(facts, denied[0], f"table {name}") if denied else facts


def _examined(connection: Connection, role: Role, facts: ResourceFacts) -> ResourceFacts:
    """Say so where a table that can be written does not do. One without any column is no progress table."""
    if facts.existence is not Existence.PRESENT or facts.unfit:
        return facts
    found = layout(connection, facts.name)
    if found is None and role is not Role.PROGRESS:
        return facts
    return replace(facts, unfit=unfit_for(role, facts.name, found or Layout({})))


def _behind(facts: ResourceFacts, obstacle: _Obstacle) -> ResourceFacts:
    """Say what is in the way. It is waited for: a standby may become the primary at any time."""
    return replace(facts, existence=Existence.UNKNOWN, reason=obstacle.reason, grant=obstacle.repair)


def _denied(facts: ResourceFacts, right: str, what: str) -> ResourceFacts:
    """Say which right is missing. It is waited for, as a topic's: it may be granted at any time."""
    reason = facts.reason or f"permission denied: {right} on {what}"
    grant = f"GRANT {right} ON {what} TO <user of the connection>;"
    return replace(facts, existence=Existence.UNKNOWN, reason=reason, grant=grant)


def _stageable(connection: Connection, data: ResourceFacts) -> ResourceFacts:
    """Say so where this login may make no temporary table."""
    database, may_stage = connection.execute(_MAY_STAGE).fetchone() or ("", True)
    if may_stage or data.existence is Existence.UNKNOWN:
        return data
    return _denied(data, "TEMP", f"database {database}")


def _no_table(what: str) -> Unfit:
    return Unfit(
        f"is {what}, and no table",
        "A sink writes into tables: rows and progress become visible in one transaction of theirs.",
        "Name a table, or another name that is free.",
    )


def _history(connection: Connection, progress: ResourceFacts, place: Place) -> tuple[History | None, str]:
    """Read the progress; not being able to is an answer too, and never an empty history."""
    if progress.existence is Existence.MISSING:
        return NO_HISTORY, ""
    if progress.existence is Existence.UNKNOWN or progress.unfit:
        return None, progress.reason or f"it {progress.unfit.what if progress.unfit else ''}"
    try:
        return progress_table.read(connection, place), ""
    except psycopg.errors.UndefinedTable as error:
        return None, str(error).strip()
