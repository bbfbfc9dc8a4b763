"""What is seen of a sink's tables: facts, without judgement. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import psycopg

from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.creation import PROGRESS_COLUMNS, identifier
from airflow_provider_sinks.connectors.postgres.known_tables import MARK, REQUIRED, Shape
from airflow_provider_sinks.connectors.postgres.letter_table import unfit_for_letters
from airflow_provider_sinks.connectors.postgres.progress_table import Place
from airflow_provider_sinks.connectors.postgres.session import Connection
from airflow_provider_sinks.connectors.postgres.types import Column
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
_COLUMNS = f"""
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(base.oid, NULL),
           {REQUIRED}, a.attgenerated <> '' OR a.attidentity = 'a', {MARK},
           format_type(base.oid, base.typmod), format_type(base.oid, -1),
           (SELECT quote_ident(n.nspname) || '.' || quote_ident(c.collname)
            FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
            WHERE c.oid = a.attcollation AND c.collname <> 'default'),
           a.attinhcount > 0 OR c.reloftype <> 0 OR a.attname IN (
               SELECT part.attname FROM pg_partition_tree(to_regclass(%(table)s)) t
               JOIN pg_attribute part ON part.attrelid = t.relid
               JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = part.attrelid
                AND d.objsubid = part.attnum AND d.refclassid = d.classid AND d.refobjid = d.objid
                AND d.refobjsubid = 0 AND d.deptype = 'i'),
           a.attnotnull
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid CROSS JOIN LATERAL (
        WITH RECURSIVE inner_type AS (
            SELECT a.atttypid AS oid, a.atttypmod AS typmod
            UNION ALL
            SELECT d.typbasetype, d.typtypmod FROM inner_type i JOIN pg_type d ON d.oid = i.oid
            WHERE d.typtype = 'd')
        SELECT i.oid, i.typmod FROM inner_type i JOIN pg_type t ON t.oid = i.oid WHERE t.typtype <> 'd'
    ) base
    WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum"""  # noqa: S608  our own words
_UNIQUE = """
    SELECT array(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (num, at)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
                 WHERE k.at <= i.indnkeyatts)
    FROM pg_index i
    WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL"""
_SORT = """
    SELECT relpersistence = 'u', row_security_active(oid),
           CASE WHEN relispartition THEN (SELECT 'TABLE ' || inhparent::regclass FROM pg_inherits
                                          WHERE inhrelid = oid)
                WHEN reloftype <> 0 THEN 'TYPE ' || reloftype::regtype ELSE '' END
    FROM pg_class WHERE oid = to_regclass(%s)"""
_KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
}
_TABLES = ("r", "p")
_WRITTEN_AGAIN = "A crash of the server empties it, and the rows would be written again."

NEEDS: Mapping[Role, tuple[str, ...]] = {
    Role.DATA: ("INSERT",),
    Role.DEAD_LETTER: ("INSERT",),
    Role.PROGRESS: ("SELECT", "INSERT", "UPDATE"),
}
"""What a login must be allowed to do with each table; a target of upserts needs more."""
NEEDS_OF_UPSERT = ("SELECT", "INSERT", "UPDATE")
NEEDS_OF_DELETE = (*NEEDS_OF_UPSERT, "DELETE")


@dataclass(frozen=True)
class Layout:
    """A table as a writer sees it.

    :param unique: the columns of each unique index that every row is in.
    :param is_unlogged: a crash of the server empties it.
    :param has_row_security: policies decide which rows this login may write.
    :param ruled_by: what alone is given columns, as ``ALTER`` names it: the table that this one is a
        partition of, or the type that it is of.
    """

    columns: Mapping[str, Column]
    unique: frozenset[frozenset[str]] = frozenset()
    is_unlogged: bool = False
    has_row_security: bool = False
    ruled_by: str = ""

    def shape(self, written: Collection[str]) -> Shape:
        """Return what must stay as it is while these columns are written."""
        return {name: column.mark for name, column in self.columns.items() if name in written}


def look(
    connection: Connection, tables: Mapping[Role, str], needs: Mapping[Role, tuple[str, ...]]
) -> dict[Role, ResourceFacts]:
    """Return which tables these are, and whether they can be written."""
    system, in_recovery, read_only = connection.execute(_SYSTEM).fetchone() or ("", False, False)
    obstacle = "the server is a read-only standby" if in_recovery else ""
    if read_only and not in_recovery:
        obstacle = "default_transaction_read_only is on for this login or database"
    return {
        role: _facts(connection, name, str(system), needs[role], obstacle) for role, name in tables.items()
    }


def look_to_stage(
    connection: Connection, tables: Mapping[Role, str], needs: Mapping[Role, tuple[str, ...]]
) -> dict[Role, ResourceFacts]:
    """Return the same for writers of our own, which stage rows in temporary tables."""
    seen = look(connection, tables, needs)
    return {**seen, Role.DATA: _stageable(connection, seen[Role.DATA])}


def observe(
    connection: Connection,
    tables: Mapping[Role, str],
    needs: Mapping[Role, tuple[str, ...]],
    sink: str,
    source: ResourceFacts,
) -> Observation:
    """Return everything that the decision is made from."""
    seen = look_to_stage(connection, tables, needs)
    progress = _of_our_shape(connection, seen[Role.PROGRESS])
    dead_letter = seen.get(Role.DEAD_LETTER)
    history, reason = _history(connection, progress, Place(tables[Role.PROGRESS], sink))
    return Observation(
        source=source,
        data=_no_progress(connection, seen[Role.DATA]),
        progress=progress,
        dead_letter=_keeping(connection, dead_letter) if dead_letter else None,
        history=history,
        history_reason=reason,
    )


def layout(connection: Connection, table: str) -> Layout | None:
    """Return the columns and unique indexes of a table, or ``None`` where there is none."""
    name = identifier(table).as_string(connection)
    found = connection.execute(_COLUMNS, {"table": name}).fetchall()
    if not found:
        return None
    sort = connection.execute(_SORT, [name]).fetchone() or (False, False, "")
    unique = connection.execute(_UNIQUE, [name]).fetchall()
    return Layout(
        {column[0]: Column(*column) for column in found},
        frozenset(frozenset(names) for (names,) in unique),
        *sort,
    )


def _facts(
    connection: Connection, name: str, system: str, needs: tuple[str, ...], obstacle: str
) -> ResourceFacts:
    schema, _, table = name.partition(".")
    found = connection.execute(_TABLE, {"needs": list(needs), "schema": schema, "table": table}).fetchone()
    if found is None:
        existence = Existence.UNKNOWN if obstacle else Existence.MISSING
        return ResourceFacts(name, existence, system, reason=obstacle, kind=ResourceKind.TABLE)
    oid, kind, may_enter, denied, size_bytes = found
    existence = Existence.UNKNOWN if obstacle else Existence.PRESENT
    facts = ResourceFacts(
        name,
        existence,
        system,
        oid,
        size_bytes=int(size_bytes or 0),
        reason=obstacle,
        kind=ResourceKind.TABLE,
    )
    if kind not in _TABLES:
        return replace(facts, unfit=_no_table(_KINDS.get(kind, "something else")))
    if not may_enter:
        return _denied(facts, "USAGE", f"schema {schema}")
    return _denied(facts, denied[0], f"table {name}") if denied else facts


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


def _of_our_shape(connection: Connection, progress: ResourceFacts) -> ResourceFacts:
    """Say so where something else has the name of the progress table, or it may be emptied."""
    if progress.existence is not Existence.PRESENT or progress.unfit:
        return progress
    found = layout(connection, progress.name)
    missing = [name for name in PROGRESS_COLUMNS if found is None or name not in found.columns]
    if missing:
        return replace(progress, unfit=_no_progress_table(f"has no column {missing[0]}"))
    if found is not None and frozenset({"sink", "writer"}) not in found.unique:
        return replace(progress, unfit=_no_progress_table("has another key than sink and writer"))
    if found is not None and found.is_unlogged:
        return replace(progress, unfit=_unlogged(progress.name, _WRITTEN_AGAIN))
    return progress


def _no_progress(connection: Connection, data: ResourceFacts) -> ResourceFacts:
    """Say so where the table is one of progress: a row in it would tell another sink where to go on."""
    if data.existence is not Existence.PRESENT or data.unfit:
        return data
    found = layout(connection, data.name)
    if found is None or not PROGRESS_COLUMNS.keys() <= found.columns.keys():
        return data
    return replace(data, unfit=_HOLDS_PROGRESS)


def _keeping(connection: Connection, dead_letter: ResourceFacts) -> ResourceFacts:
    """Say so where the table of dead letters does not take or keep them: progress counts them as kept."""
    if dead_letter.existence is not Existence.PRESENT or dead_letter.unfit:
        return dead_letter
    found = layout(connection, dead_letter.name)
    if found is None:
        return dead_letter
    if found.is_unlogged:
        why = "A crash of the server empties it, and nobody sets its rows aside again."
        return replace(dead_letter, unfit=_unlogged(dead_letter.name, why))
    return replace(dead_letter, unfit=unfit_for_letters(dead_letter.name, found.columns))


_HOLDS_PROGRESS = Unfit(
    "holds the progress of sinks",
    "Rows in it would be taken for progress: those sinks would stop, or lose rows or write them again.",
    "Name another table.",
    is_others=True,
)


def _no_progress_table(what: str) -> Unfit:
    return Unfit(
        what,
        "So it is no progress table: something else has its name.",
        "Name another table as progress: the sink makes it.",
    )


def _unlogged(name: str, why: str) -> Unfit:
    return Unfit(
        "is unlogged",
        why,
        f"ALTER TABLE {name} SET LOGGED;",
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
