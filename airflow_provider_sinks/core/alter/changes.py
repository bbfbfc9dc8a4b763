"""What a user wants changed in a connection, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.connection.alterable import AlterableOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import Problem, nearest

MASK = "***"
"""What Airflow shows in the place of a secret."""


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


@dataclass(frozen=True)
class Means:
    """What changes are judged by.

    :param secrets: the values of the Variables that :class:`Secret` names, as far as they could be read.
    :param leave: what the author of the DAG allows.
    :param is_repeated: an earlier try may have made these changes, so that a ``DROP`` may find nothing.
    """

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    leave: Leave = field(default_factory=Leave)
    is_repeated: bool = False


def change_problems(
    changes: Sequence[Change], options: AlterableOptions, old: ConnectionFields, means: Means
) -> Iterator[Problem]:
    """Judge changes by themselves.

    :param options: those of the connection's type.
    """
    if not changes:
        yield Problem("", "nothing is to be changed", "give set, drop or reset")
    seen: dict[str, Change] = {}
    for change in changes:
        name = options.canonical(change.name)
        if name in seen:
            yield _twice(seen[name], change)
        seen.setdefault(name, change)
        if isinstance(change, DropOption):
            yield from _drop_problems(change, name, options, old, means)
        else:
            yield from _name_problems(change, name, options)
        if isinstance(change, SetOption) and options.is_alterable(name):
            yield from _value_problems(change, name, options, means)
            yield from _file_problems(change, name, options, old, means)


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
    change: DropOption, name: str, options: AlterableOptions, old: ConnectionFields, means: Means
) -> Iterator[Problem]:
    """Judge a DROP: whatever is set may go, also what could not be set."""
    present = {options.canonical(key) for key in old.whole_extra()}
    present |= {column for column in options.columns if plain(getattr(old, column)) is not None}
    known = options.is_alterable(name)
    if name in present or (known and means.is_repeated):
        return
    if not known:
        yield from _name_problems(change, name, options)
    else:
        yield Problem(change.name, "is not set", nearest(change.name, sorted(present - {name})))


def _value_problems(
    change: SetOption, name: str, options: AlterableOptions, means: Means
) -> Iterator[Problem]:
    value = change.value
    if isinstance(value, Secret):
        if problem := _secret_problem(change.name, value, means, is_secret=name in options.secrets):
            yield problem
            return
        value = means.secrets[value.variable]
    elif name in options.secrets:
        hint = (
            f"put it into a Variable, its name beginning with {means.leave.secret_prefix}, and give "
            '{"secret": "<its name>"}; in a statement, SECRET <its name>'
        )
        yield Problem(change.name, "is a secret: a value would stand in the DAG and in Airflow's UI", hint)
        return
    if value == MASK:
        what = f"is {MASK}, which Airflow shows in the place of a secret"
        yield Problem(change.name, what, "leave the option out to keep its value")
    elif not isinstance(value, str | int) or (isinstance(value, str) and not value.strip()):
        yield Problem(change.name, "must be text or a number", "DROP it to have none")
    elif name == "port" and not str(value).isdecimal():
        yield Problem(change.name, "is not a number", "1 to 65535")


def _secret_problem(written: str, value: Secret, means: Means, *, is_secret: bool) -> Problem | None:
    """Judge a secret by its name before anything is looked up: who asks learns of no other Variable."""
    if not is_secret:
        return Problem(written, "is no secret, and Airflow would show it", "write its value")
    if not means.leave.may_read(value.variable):
        what = f"names a Variable that does not begin with {means.leave.secret_prefix}, and was not looked at"
        return Problem(written, what)
    if value.variable not in means.secrets:
        return Problem(
            written, f"names the Variable {value.variable!r}, which is not there, or not for this task"
        )
    return None


def _file_problems(
    change: SetOption, name: str, options: AlterableOptions, old: ConnectionFields, means: Means
) -> Iterator[Problem]:
    """Judge the name of a file: it could be used to find out what files there are."""
    is_socket = name == "host" and str(change.value).startswith("/")
    if not (name in options.files or is_socket) or (name == "sslrootcert" and change.value == "system"):
        return
    stored = {options.canonical(key): value for key, value in old.whole_extra().items()}
    if change.value in (stored.get(name), old.host if is_socket else None) or means.leave.may_name(
        change.value
    ):
        return
    inline = name.replace(".location", ".pem")
    text = f"; or give its text, {inline}" if inline in options.in_extra and inline != name else ""
    hint = f"allowed_files=[...] of the operator, in the DAG file{text}"
    yield Problem(change.name, "names a file of the worker that the author of the DAG has not allowed", hint)


def plain(value: Any) -> Any:
    """Return a field as a value: Airflow's form stores an empty text for none."""
    return None if value == "" else value
