"""A table as a writer sees it: its columns, its unique indexes, what else decides what becomes of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.known_tables import MARK, REQUIRED, Shape
from airflow_provider_sinks.connectors.postgres.session import Connection
from airflow_provider_sinks.connectors.postgres.types import Column
from airflow_provider_sinks.connectors.postgres.unique_indexes import UniqueIndex, unique_indexes

TREE = """
    WITH RECURSIVE tree AS (
        SELECT to_regclass(%(table)s)::oid AS oid
        UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid)"""
"""In SQL, the beginning of a query over a table, its partitions, and whatever inherits from it."""
_COLUMNS = f"""{TREE}, parents AS (
        SELECT i.inhrelid AS oid, count(*) AS number FROM pg_inherits i JOIN tree ON tree.oid = i.inhparent
        GROUP BY i.inhrelid),
    of_others AS (
        SELECT part.attname FROM tree LEFT JOIN parents ON parents.oid = tree.oid
        JOIN pg_attribute part ON part.attrelid = tree.oid
        WHERE part.attnum > 0 AND part.attinhcount > coalesce(parents.number, 0))
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(base.oid, NULL),
           {REQUIRED}, a.attgenerated <> '' OR a.attidentity = 'a', {MARK},
           format_type(base.oid, base.typmod), format_type(base.oid, -1),
           (SELECT quote_ident(n.nspname) || '.' || quote_ident(c.collname)
            FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
            WHERE c.oid = a.attcollation AND c.collname <> 'default'),
           c.reloftype <> 0 OR a.attname IN (SELECT attname FROM of_others) OR a.attname IN (
               SELECT part.attname FROM pg_partition_tree(to_regclass(%(table)s)) t
               JOIN pg_attribute part ON part.attrelid = t.relid
               JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = part.attrelid
                AND d.objsubid = part.attnum AND d.refclassid = d.classid AND d.refobjid = d.objid
                AND d.refobjsubid = 0 AND d.deptype = 'i'),
           a.attnotnull, a.attidentity <> ''
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
_SORT = f"""{TREE}, part AS (
        SELECT p.oid::regclass::text AS name, p.relkind, p.relpersistence
        FROM tree JOIN pg_class p ON p.oid = tree.oid
        WHERE p.relispartition AND p.oid <> to_regclass(%(table)s)),
    below AS (
        SELECT a.attname::text AS name, string_agg(DISTINCT format_type(a.atttypid, a.atttypmod) || CASE
                   WHEN a.attcollation = t.typcollation THEN ''
                   ELSE ' COLLATE ' || a.attcollation::regcollation::text END, ', ') AS kinds
        FROM tree JOIN pg_class c ON c.oid = tree.oid JOIN pg_attribute a ON a.attrelid = c.oid
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE NOT c.relispartition AND c.oid <> to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
        GROUP BY a.attname)
    SELECT own.relpersistence = 'u' AND own.relkind <> 'p', row_security_active(own.oid),
           CASE WHEN own.relispartition THEN (SELECT 'TABLE ' || inhparent::regclass FROM pg_inherits
                                              WHERE inhrelid = own.oid)
                WHEN own.reloftype <> 0 THEN 'TYPE ' || own.reloftype::regtype ELSE '' END,
           (SELECT coalesce(min(name), '') FROM part WHERE relpersistence = 'u' AND relkind <> 'p'),
           (SELECT coalesce(min(name), '') FROM part WHERE relkind = 'f'),
           (SELECT coalesce(jsonb_object_agg(quote_ident(rulename), CASE ev_type
                       WHEN '2' THEN 'UPDATE' WHEN '3' THEN 'INSERT' ELSE 'DELETE' END), '{{}}')
            FROM pg_rewrite WHERE ev_class = own.oid AND ev_type <> '1' AND ev_enabled IN ('O', 'A')),
           (SELECT coalesce(jsonb_object_agg(name, kinds), '{{}}') FROM below),
           (SELECT coalesce(jsonb_object_agg(event, name), '{{}}') FROM (
                SELECT event, (array_agg(quote_ident(t.tgname) || ' ON ' || c.oid::regclass
                                         ORDER BY c.oid <> own.oid, t.tgname))[1] AS name
                FROM tree JOIN pg_class c ON c.oid = tree.oid JOIN pg_trigger t ON t.tgrelid = c.oid
                JOIN (VALUES ('INSERT', 4), ('UPDATE', 16), ('DELETE', 8)) events (event, bit)
                    ON t.tgtype & bit <> 0
                WHERE (c.relispartition OR c.oid = own.oid) AND NOT t.tgisinternal
                  AND t.tgenabled IN ('O', 'A') AND t.tgtype & 3 = 3
                GROUP BY event) before)
    FROM pg_class own WHERE own.oid = to_regclass(%(table)s)"""  # noqa: S608  our own words


@dataclass(frozen=True)
class Layout:
    """A table as a writer sees it.

    :param indexes: its unique ones.
    :param is_unlogged: a crash of the server empties it.
    :param has_row_security: policies decide which rows this login may write.
    :param ruled_by: what alone is given columns, as ``ALTER`` names it: the table that this one is a
        partition of, or the type that it is of.
    :param unlogged_partition: one that a crash of the server empties; empty where there is none.
    :param foreign_partition: one whose rows another server keeps, and commits by itself; likewise.
    :param rules: on what each rule of the table acts: ``INSERT``, ``UPDATE`` or ``DELETE``.
    :param below: the types of columns that tables have which inherit from it.
    :param triggers: by event, one of it or of a partition that may drop or change a row before the event:
        its name and its table, as ``DROP TRIGGER`` names them.
    """

    columns: Mapping[str, Column]
    indexes: Collection[UniqueIndex] = ()
    is_unlogged: bool = False
    has_row_security: bool = False
    ruled_by: str = ""
    unlogged_partition: str = ""
    foreign_partition: str = ""
    rules: Mapping[str, str] = field(default_factory=dict)
    below: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, str] = field(default_factory=dict)

    def shape(self, written: Collection[str]) -> Shape:
        """Return what must stay as it is while these columns are written."""
        return {name: column.mark for name, column in self.columns.items() if name in written}


def layout(connection: Connection, table: str) -> Layout | None:
    """Return a table as it is, or ``None`` where there is none.

    :param table: with its schema.
    """
    given = {"table": identifier(table).as_string(connection)}
    columns = connection.execute(_COLUMNS, given).fetchall()
    sort = connection.execute(_SORT, given).fetchone()
    if not columns or sort is None:
        return None
    found = {column[0]: Column(*column) for column in columns}
    return Layout(found, unique_indexes(connection, given), *sort)
