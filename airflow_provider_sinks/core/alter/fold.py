"""SET, DROP and RESET of a connection's options: several at once, in one step, or none of them.

The result is judged by the function that judges a new connection, so nothing can be altered into what could
not be created. Options have the names of the connection's type: librdkafka's for ``kafka``; the fields and
libpq's names for ``postgres``.

>>> from airflow_provider_sinks.core.alter.changes import DropOption
>>> old = ConnectionFields("kafka_prod", "kafka", extra={"bootstrap.servers": "a:9092", "client.id": "x"})
>>> changes = [SetOption("bootstrap.servers", "b:9092"), DropOption("client.id")]
>>> dict(alter(old, changes).extra)
{'bootstrap.servers': 'b:9092'}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from airflow_provider_sinks.core.alter.changes import (
    Change,
    Means,
    Secret,
    SetOption,
    Value,
    change_problems,
    plain,
)
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.stored_secrets import kept_problems, kept_secrets, lent_problems
from airflow_provider_sinks.core.connection.types import known_types
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

_NO_MEANS = Means()


def alter(old: ConnectionFields, changes: Sequence[Change], means: Means = _NO_MEANS) -> ConnectionFields:
    """Return a connection with all changes made to it.

    :raises ConfigurationError: with all problems at once, those of the result among them.
    """
    options = _alterable(old)
    if options is None:
        *others, last = sorted(known_types())
        types = f"{', '.join(others)} and {last}"
        what = f"is {old.conn_type}: only connections of type {types} can be altered"
        raise _not_altered(old.conn_id, [Problem("conn_type", what)])
    if problems := [*change_problems(changes, options, old, means)]:
        raise _not_altered(old.conn_id, problems)
    new = fold(old, changes, means.secrets)
    given = {options.canonical(change.name) for change in changes if isinstance(change, SetOption)}
    kept = {} if means.leave.keep_secrets else kept_secrets(old, new, options, given)
    lent = [] if means.leave.keep_secrets else lent_problems(old, new, options)
    if problems := [*_result_problems(new), *kept_problems(kept), *lent]:
        hint = _anew(old.conn_id, changes, kept, means.leave) if kept else ""
        raise _not_altered(old.conn_id, problems, hint)
    return new


def variables(old: ConnectionFields, changes: Sequence[Change], leave: Leave) -> frozenset[str]:
    """Return the Variables that may be read for changes; of others not even whether they are there."""
    options = _alterable(old)
    return frozenset(
        change.value.variable
        for change in changes
        if isinstance(change, SetOption)
        and isinstance(change.value, Secret)
        and options is not None
        and options.canonical(change.name) in options.secrets
        and leave.may_read(change.value.variable)
    )


def _anew(conn_id: str, changes: Sequence[Change], kept: Collection[str], leave: Leave) -> str:
    """Return the statement to write instead: the same changes, with the secrets; it shows no value."""
    sets = [
        f"{change.name} = {_written(change.value)}" for change in changes if isinstance(change, SetOption)
    ]
    sets += [f"{name} = SECRET {leave.secret_prefix}<name>" for name in kept]
    others = [f"{change.verb} ({change.name})" for change in changes if not isinstance(change, SetOption)]
    actions = ", ".join([f"SET ({', '.join(sets)})", *others])
    return f"Put the secrets into Variables and write: ALTER CONNECTION {conn_id} {actions}"


def _written(value: Value | Secret) -> str:
    return f"SECRET {value.variable}" if isinstance(value, Secret) else "'...'"


def changed_names(old: ConnectionFields, new: ConnectionFields) -> tuple[str, ...]:
    """Return the names of all options that differ, sorted; never a value."""
    columns = [name for name in COLUMNS if plain(getattr(old, name)) != plain(getattr(new, name))]
    if options := _alterable(old):
        columns = [name for name in columns if options.canonical(name) == name]
    before, after = old.whole_extra(), new.whole_extra()
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return tuple(sorted([*columns, *keys]))


def changed_columns(old: ConnectionFields, new: ConnectionFields) -> tuple[str, ...]:
    """Return the columns of Airflow's table that differ: fields, and ``extra`` as a whole."""
    columns = [name for name in COLUMNS if plain(getattr(old, name)) != plain(getattr(new, name))]
    return tuple(columns + (["extra"] if old.stored_extra() != new.stored_extra() else []))


def same(one: ConnectionFields, other: ConnectionFields) -> bool:
    """Return whether two connections say the same, whatever their ids."""
    return one.conn_type == other.conn_type and not changed_columns(one, other)


def fold(old: ConnectionFields, changes: Sequence[Change], secrets: Mapping[str, str]) -> ConnectionFields:
    """Return a connection with all changes made to it, and judge nothing.

    :param secrets: the values of all Variables that the changes name.
    """
    options = old.of_known_type().alterable
    extra = old.whole_extra()
    columns: dict[str, Any] = {}
    for change in changes:
        name = options.canonical(change.name)
        value = _value(change.value, secrets) if isinstance(change, SetOption) else None
        if name in options.columns:
            columns[name] = int(str(value)) if name == "port" and str(value).isdecimal() else value
            continue
        for written in [key for key in extra if options.canonical(key) == name]:
            del extra[written]
        if value is not None:
            extra[name if change.name in COLUMNS else change.name] = value
    return old.of_known_type().placed(old, columns, extra)


def _value(value: Value | Secret, secrets: Mapping[str, str]) -> Value:
    return secrets[value.variable] if isinstance(value, Secret) else value


def _result_problems(new: ConnectionFields) -> Sequence[Problem]:
    try:
        new.options()
    except ConfigurationError as error:
        return error.problems
    return ()


def _alterable(connection: ConnectionFields) -> AlterableOptions | None:
    known = known_types().get(connection.conn_type)
    return known.alterable if known else None


def _not_altered(conn_id: str, problems: Sequence[Problem], hint: str = "") -> ConfigurationError:
    return ConfigurationError(f'connection "{conn_id}" was not altered', problems, hint)
