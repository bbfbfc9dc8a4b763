"""By which columns does a query join a lookup? Read from the SQL; each value of them should stand once there.

>>> lookup_keys("SELECT * FROM source s JOIN users u ON s.id = u.userid AND u.ok", "users", ["userid", "ok"])
(('userid',),)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.query.sql import read

if TYPE_CHECKING:
    from sqlglot import exp


def lookup_keys(query: str, lookup: str, columns: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of a lookup that must equal something, for each join with it that has any.

    :param columns: the lookup's columns, as its table spells them.
    """
    from sqlglot import exp

    spelled = {name.lower(): name for name in columns}
    found = []
    for join in read(query).tree.find_all(exp.Join):
        if isinstance(join.this, exp.Table) and join.this.name.lower() == lookup.lower():
            names = dict.fromkeys(name.lower() for name in _equalled(join))
            found.append(tuple(spelled[name] for name in names if name in spelled))
    return tuple(keys for keys in found if keys)


def _equalled(join: exp.Join) -> Iterator[str]:
    from sqlglot import exp

    for name in join.args.get("using") or ():
        yield name.name
    on = join.args["on"].unnest() if join.args.get("on") else None
    for part in on.flatten() if isinstance(on, exp.And) else (on,):
        condition = None if part is None else part.unnest()
        if isinstance(condition, exp.EQ):
            yield from _columns_of(condition, join.this.alias_or_name.lower())


def _columns_of(equality: exp.EQ, alias: str) -> Iterator[str]:
    from sqlglot import exp

    for side in (equality.left.unnest(), equality.right.unnest()):
        if isinstance(side, exp.Column) and side.table.lower() in (alias, ""):
            yield side.name
