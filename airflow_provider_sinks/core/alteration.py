"""SET, DROP and RESET of a connection's options: several at once, in one step, or none of them.

The result is judged by the function that judges a new connection, so nothing can be altered into what could
not be created. Options have the names of the connection's type: librdkafka's for ``kafka``; the fields and
libpq's names for ``postgres``.

>>> old = ConnectionFields("kafka_prod", "kafka", extra={"bootstrap.servers": "a:9092", "client.id": "x"})
>>> changes = [SetOption("bootstrap.servers", "b:9092"), DropOption("client.id")]
>>> dict(alter(old, changes).extra)
{'bootstrap.servers': 'b:9092'}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from airflow_provider_sinks.core.altered_options import AlterableOptions, options_of_type
from airflow_provider_sinks.core.checks.fields import ConnectionFields, read_extra
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

MASK = "***"
"""What Airflow shows in the place of a secret."""

COLUMNS = ("host", "port", "login", "password", "schema")
"""The fields of a connection beside its extra."""


@dataclass(frozen=True)
class Secret:
    """A value that stands in an Airflow Variable, so that it stands nowhere else.

    :param variable: the Variable's name.
    """

    variable: str


Value: TypeAlias = str | int | bool


@dataclass(frozen=True)
class SetOption:
    """Give an option a value, whether it has one or not; that of a secret option is a :class:`Secret`."""

    verb: ClassVar[str] = "SET"
    name: str
    value: Value | Secret | Any = field(repr=False)


@dataclass(frozen=True)
class DropOption:
    """Take away an option that is set."""

    verb: ClassVar[str] = "DROP"
    name: str


@dataclass(frozen=True)
class ResetOption:
    """Put an option back to its default, whether it is set or not."""

    verb: ClassVar[str] = "RESET"
    name: str


Change: TypeAlias = SetOption | DropOption | ResetOption


def alter(
    old: ConnectionFields,
    changes: Sequence[Change],
    secrets: Mapping[str, str] | None = None,
    *,
    is_repeated: bool = False,
) -> ConnectionFields:
    """Return a connection with all changes made to it.

    :param secrets: the values of the Variables that :class:`Secret` names; one that is missing is a problem.
    :param is_repeated: an earlier try may have made these changes, so that a ``DROP`` may find nothing.
    :raises ConfigurationError: with all problems at once, those of the result among them.
    """
    options = options_of_type(old.conn_type)
    if options is None:
        what = f"is {old.conn_type}: only connections of type kafka and postgres can be altered"
        raise _not_altered(old.conn_id, [Problem("conn_type", what)])
    extra = _extra(old)
    problems = [*_problems(changes, options, old, secrets or {}, is_repeated=is_repeated)]
    new = old
    if not problems:
        new = _fold(old, extra, changes, options, secrets or {})
        problems += _result_problems(new)
    if problems:
        raise _not_altered(old.conn_id, problems)
    return new


def changed_names(old: ConnectionFields, new: ConnectionFields) -> tuple[str, ...]:
    """Return the names of all options that differ, sorted; never a value."""
    columns = [name for name in COLUMNS if _plain(getattr(old, name)) != _plain(getattr(new, name))]
    before, after = _extra(old), _extra(new)
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return tuple(sorted([*columns, *keys]))


def changed_columns(old: ConnectionFields, new: ConnectionFields) -> tuple[str, ...]:
    """Return the columns of Airflow's table that differ: fields, and ``extra`` as a whole."""
    columns = [name for name in COLUMNS if _plain(getattr(old, name)) != _plain(getattr(new, name))]
    return tuple(columns + (["extra"] if _extra(old) != _extra(new) else []))


def same(one: ConnectionFields, other: ConnectionFields) -> bool:
    """Return whether two connections say the same, whatever their ids."""
    return one.conn_type == other.conn_type and not changed_columns(one, other)


def _fold(
    old: ConnectionFields,
    extra: dict[str, Any],
    changes: Sequence[Change],
    options: AlterableOptions,
    secrets: Mapping[str, str],
) -> ConnectionFields:
    columns: dict[str, Any] = {}
    for change in changes:
        name = options.canonical(change.name)
        value = _value(change.value, secrets) if isinstance(change, SetOption) else None
        if name in options.columns:
            columns[name] = int(value) if name == "port" and value is not None else value
            continue
        for written in [key for key in extra if options.canonical(key) == name]:
            del extra[written]
        if value is not None:
            extra[change.name] = value
    return replace(old, **columns, extra=extra)


def _value(value: Value | Secret, secrets: Mapping[str, str]) -> Value:
    return secrets[value.variable] if isinstance(value, Secret) else value


def _problems(
    changes: Sequence[Change],
    options: AlterableOptions,
    old: ConnectionFields,
    secrets: Mapping[str, str],
    *,
    is_repeated: bool,
) -> Iterator[Problem]:
    if not changes:
        yield Problem("", "nothing is to be changed", "give set, drop or reset")
    seen: dict[str, Change] = {}
    for change in changes:
        name = options.canonical(change.name)
        if name in seen:
            yield _twice(seen[name], change)
        seen.setdefault(name, change)
        if isinstance(change, DropOption):
            yield from _drop_problems(change, name, options, old, is_repeated=is_repeated)
        else:
            yield from _name_problems(change, name, options)
        if isinstance(change, SetOption) and options.is_alterable(name):
            yield from _value_problems(change, name, options, secrets)


def _twice(first: Change, second: Change) -> Problem:
    if first.verb != second.verb:
        return Problem(second.name, f"is to be {first.verb} and {second.verb} at once", "give it once")
    other = f", before as {first.name!r}" if first.name != second.name else ""
    return Problem(second.name, f"is given twice{other}", "give it once")


def _name_problems(change: Change, name: str, options: AlterableOptions) -> Iterator[Problem]:
    if options.is_alterable(name):
        return
    if why := options.refusal(name):
        yield Problem(change.name, f"may not be altered: {why}")
    else:
        yield Problem(change.name, "is not known", nearest(change.name, options.names))


def _drop_problems(
    change: DropOption, name: str, options: AlterableOptions, old: ConnectionFields, *, is_repeated: bool
) -> Iterator[Problem]:
    """Judge a DROP: whatever is set may go, also what could not be set."""
    present = {options.canonical(key) for key in _extra(old)}
    present |= {column for column in options.columns if _plain(getattr(old, column)) is not None}
    known = options.is_alterable(name)
    if name in present or (known and is_repeated):
        return
    if not known:
        yield from _name_problems(change, name, options)
    else:
        yield Problem(change.name, "is not set", nearest(change.name, sorted(present - {name})))


def _value_problems(
    change: SetOption, name: str, options: AlterableOptions, secrets: Mapping[str, str]
) -> Iterator[Problem]:
    value = change.value
    if isinstance(value, Secret):
        if value.variable not in secrets:
            what = f"names the Variable {value.variable!r}, which is not there, or not for this task"
            yield Problem(change.name, what)
            return
        value = secrets[value.variable]
    elif name in options.secrets:
        hint = 'put it into a Variable and give {"secret": "<its name>"}; in a statement, SECRET <its name>'
        yield Problem(change.name, "is a secret: a value would stand in the DAG and in Airflow's UI", hint)
        return
    if value == MASK:
        what = f"is {MASK}, which Airflow shows in the place of a secret"
        yield Problem(change.name, what, "leave the option out to keep its value")
    elif not isinstance(value, str | int) or (isinstance(value, str) and not value.strip()):
        yield Problem(change.name, "must be text or a number", "DROP it to have none")
    elif name == "port" and not str(value).isdecimal():
        yield Problem(change.name, "is not a number", "1 to 65535")


def _result_problems(new: ConnectionFields) -> Sequence[Problem]:
    try:
        new.options()
    except ConfigurationError as error:
        return error.problems
    return ()


def _extra(connection: ConnectionFields) -> dict[str, Any]:
    return dict(read_extra(connection.conn_id, connection.extra))


def _plain(value: Any) -> Any:
    """Return a field as a value: Airflow's form stores an empty text for none."""
    return None if value == "" else value


def _not_altered(conn_id: str, problems: Sequence[Problem]) -> ConfigurationError:
    return ConfigurationError(f'connection "{conn_id}" was not altered', problems)
