"""Which unique index makes a key of columns: what the catalog of Postgres says of each, and what follows.

``ON CONFLICT (columns)`` goes by every valid unique index over just these columns, whatever its collation and
its operators. Rows of one key are also sought, and deleted, by the columns themselves. So each of those
indexes must call the same values equal as the columns do:

* All deterministic collations do: to them texts are equal that have the same bytes.
* ``NULLS NOT DISTINCT`` makes no difference: a row with a null in its key is set aside before.
* An index that is partial, over an expression, not valid or of ``WITHOUT OVERLAPS`` is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_sinks.connectors.postgres.session import Connection

_EQUALITY = """(
    SELECT amopopr FROM pg_amop
    WHERE amopfamily = {0}.opcfamily AND amoplefttype = {0}.opcintype AND amoprighttype = {0}.opcintype
      AND amopstrategy = 3)"""
_INDEXES = f"""
    SELECT i.indexrelid::regclass::text,
           array(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (num, at)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
                 WHERE k.at <= i.indnkeyatts
                 UNION
                 SELECT a.attname::text FROM pg_depend d
                 JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                 WHERE i.indexprs IS NOT NULL AND d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                   AND d.refclassid = d.classid AND d.refobjid = i.indrelid AND d.refobjsubid > 0),
           i.indisvalid, i.indpred IS NOT NULL, i.indexprs IS NOT NULL, i.indisexclusion,
           CASE WHEN i.indimmediate THEN '' ELSE coalesce(quote_ident(c.conname), '') END,
           i.indisprimary,
           array(SELECT a.attname::text
                 FROM unnest(i.indkey::int2[], i.indcollation::oid[], i.indclass::oid[])
                      WITH ORDINALITY k (num, sorts, class, at)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
                 WHERE k.at <= i.indnkeyatts AND (
                     k.sorts <> a.attcollation AND EXISTS (
                         SELECT FROM pg_collation
                         WHERE oid IN (k.sorts, a.attcollation) AND NOT collisdeterministic)
                     OR EXISTS (
                         SELECT FROM pg_opclass own JOIN pg_opclass usual ON usual.opcmethod = own.opcmethod
                          AND usual.opcdefault AND usual.opcintype IN (own.opcintype, a.atttypid)
                         WHERE own.oid = k.class
                           AND {_EQUALITY.format("own")} IS DISTINCT FROM {_EQUALITY.format("usual")})))
    FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x')
    WHERE i.indrelid = to_regclass(%(table)s) AND i.indisunique AND i.indislive
    ORDER BY i.indexrelid"""  # noqa: S608  our own words


@dataclass(frozen=True)
class UniqueIndex:
    """A unique index of a table.

    :param name: as SQL spells it.
    :param columns: of its key, those in its expressions too.
    :param deferrable: the constraint that it is of, as SQL spells it, where that may be checked later.
    :param unlike: columns of which it calls other values equal than the column itself does.
    """

    name: str
    columns: frozenset[str]
    is_valid: bool = True
    is_partial: bool = False
    has_expressions: bool = False
    is_of_exclusion: bool = False
    deferrable: str = ""
    is_primary: bool = False
    unlike: Sequence[str] = ()

    @property
    def passed_over(self) -> str:
        """Why ``ON CONFLICT`` does not go by it; empty where it does."""
        if not self.is_valid:
            return f"{self.name} is not valid: REINDEX it, or drop it"
        if self.has_expressions:
            return f"{self.name} has an expression"
        if self.is_partial:
            return f"{self.name} is partial"
        return f"{self.name} is of WITHOUT OVERLAPS" if self.is_of_exclusion else ""

    @property
    def is_fit(self) -> bool:
        """Whether rows can be written by it."""
        return not (self.passed_over or self.deferrable or self.unlike)


@dataclass(frozen=True)
class KeyObstacle:
    """Why rows of a table cannot be written by a key.

    :param repair: the SQL that mends it.
    """

    what: str
    repair: str


def unique_indexes(connection: Connection, table: Mapping[str, str]) -> tuple[UniqueIndex, ...]:
    """Return the unique indexes of a table.

    :param table: its quoted name with its schema, as ``table``.
    """
    found = connection.execute(_INDEXES, table).fetchall()
    return tuple(UniqueIndex(name, frozenset(columns), *rest) for name, columns, *rest in found)


def key_obstacle(table: str, key: Sequence[str], indexes: Iterable[UniqueIndex]) -> KeyObstacle | None:
    """Return why rows cannot be written by a key; ``None`` where they can.

    :param table: with its schema.
    """
    near = [index for index in indexes if index.columns == frozenset(key)]
    used = [index for index in near if not index.passed_over]
    names = ", ".join(key)
    has_fit = any(index.is_fit for index in used)
    unfit = next((index for index in used if not index.is_fit), None)
    if unfit is not None and unfit.deferrable:
        return _deferrable(table, names, unfit, has_fit=has_fit)
    if unfit is not None:
        return _unlike(table, names, unfit, has_fit=has_fit)
    return None if has_fit else _none(table, names, near)


def _deferrable(table: str, names: str, index: UniqueIndex, *, has_fit: bool) -> KeyObstacle:
    added = f", ADD {'PRIMARY KEY' if index.is_primary else 'UNIQUE'} ({names})"
    return KeyObstacle(
        f"constraint {index.deferrable} on {names} is deferrable: ON CONFLICT takes no such one",
        f"ALTER TABLE {table} DROP CONSTRAINT {index.deferrable}{'' if has_fit else added}",
    )


def _unlike(table: str, names: str, index: UniqueIndex, *, has_fit: bool) -> KeyObstacle:
    added = f"; CREATE UNIQUE INDEX ON {table} ({names})"
    columns = ", ".join(index.unlike)
    return KeyObstacle(
        f"index {index.name} calls other values of {columns} equal than the column does, "
        "by its collation or operators",
        f"DROP INDEX {index.name}{'' if has_fit else added}",
    )


def _none(table: str, names: str, near: Iterable[UniqueIndex]) -> KeyObstacle:
    seen = "; ".join(index.passed_over for index in near)
    what = f"no unique index of the table has just the columns {names}"
    return KeyObstacle(f"{what} ({seen})" if seen else what, f"CREATE UNIQUE INDEX ON {table} ({names})")
