"""What the user of ``AlterConnectionRestartOperator`` asks for: arguments or a statement, as one order.

A form of Airflow's UI gives texts, so a text stands for what it says: ``"true"``, ``"a, b"``, ``'{"a": 1}'``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow_provider_sinks.arguments import is_template
from airflow_provider_sinks.core.alter.backup import before_id
from airflow_provider_sinks.core.alter.changes import Change, DropOption, ResetOption, Secret, SetOption
from airflow_provider_sinks.core.alter.leave import Leave, leave_problems
from airflow_provider_sinks.core.alter.statement import Statement, parse_statement
from airflow_provider_sinks.core.alter.steps import Wishes
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.problems import UnfitError

FLAGS = ("validate", "dry_run", "restart", "rollback")
_CHANGES = ("set", "drop", "reset")
_WRITTEN = {"true": True, "false": False}


@dataclass(frozen=True)
class AlterOrder:
    """What is to be done.

    :param watch_seconds: how long dependents are waited for.
    :param leave: what the author of the DAG allows.
    """

    conn_id: str
    changes: tuple[Change, ...]
    wishes: Wishes
    is_dry_run: bool
    watch_seconds: float
    leave: Leave


def demand_valid(arguments: Mapping[str, Any]) -> None:
    """Judge what is certain when the DAG file is read: all but templates, and what hangs on them.

    :raises ConfigurationError: with all problems at once.
    """
    literal = {name: None if is_template(value) else value for name, value in arguments.items()}
    problems = [*_subject_problems(arguments), *leave_problems(arguments)]
    for name, read in _READERS.items():
        problems += _problems_of(name, read, literal[name])
    if literal["conn_id"] is not None:
        problems += _problems_of("conn_id", before_id, literal["conn_id"])
    if literal["statement"] is not None and not problems:
        _statement(literal["statement"])
    _demand(problems)


def read_order(arguments: Mapping[str, Any]) -> AlterOrder:
    """Return the order, once templates are rendered.

    :param arguments: all arguments of the operator, by name.
    :raises ConfigurationError: with all problems at once.
    """
    demand_valid(arguments)
    given = {name: read(arguments[name]) for name, read in _READERS.items()}
    text = arguments["statement"]
    statement = _statement(text) if text else Statement(arguments["conn_id"], _changes(given))
    flags = {name: statement.flags.get(name, given[name]) for name in FLAGS}
    before_id(statement.conn_id)
    return AlterOrder(
        conn_id=statement.conn_id,
        changes=statement.changes,
        wishes=Wishes(flags["validate"], flags["restart"], flags["rollback"]),
        is_dry_run=flags["dry_run"],
        watch_seconds=given["watch_timeout"],
        leave=Leave(arguments["keep_secrets"], arguments["secret_prefix"], tuple(arguments["allowed_files"])),
    )


def ordered(names: Any) -> Any:
    """Return a set as a sorted list, so that a DAG is the same every time; anything else as it is."""
    return sorted(names) if isinstance(names, set | frozenset) else names


def _changes(given: Mapping[str, Any]) -> tuple[Change, ...]:
    sets = [SetOption(name, _value(value)) for name, value in given["set"].items()]
    drops = [DropOption(name) for name in given["drop"]]
    return (*sets, *drops, *(ResetOption(name) for name in given["reset"]))


def _value(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"secret"} and isinstance(value["secret"], str):
        return Secret(value["secret"])
    return value


def _subject_problems(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    changes = [name for name in _CHANGES if arguments[name]]
    if arguments["statement"]:
        beside = [name for name in ("conn_id", *changes) if arguments[name]]
        if beside:
            yield Problem("statement", f"is given beside {', '.join(beside)}", "give one form")
        return
    if not arguments["conn_id"]:
        yield Problem("conn_id", "is missing", "or give a statement")
    if not changes:
        yield Problem(", ".join(_CHANGES), "nothing is to be changed", "give one of them, or a statement")


def _statement(text: Any) -> Statement:
    if not isinstance(text, str):
        raise ConfigurationError("the statement is not a text", [Problem("statement", "must be a text")])
    return parse_statement(text)


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:  # from None: the text may hold a secret
            raise UnfitError("is not JSON", '{"client.id": "sinks"}') from None
    if value and not isinstance(value, Mapping):
        raise UnfitError("must be a mapping of options to values")
    return {str(name): given for name, given in (value or {}).items()}


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if value and not isinstance(value, list | tuple | set | frozenset):
        raise UnfitError("must be a list of options")
    if wrong := [name for name in value or () if not isinstance(name, str)]:
        raise UnfitError(f"holds {wrong[0]!r}, which is no name")
    return list(ordered(value) or ())


def _flag(value: Any) -> bool:
    known = _WRITTEN.get(value.strip().lower()) if isinstance(value, str) else value
    if value is None or isinstance(known, bool):
        return bool(known)
    raise UnfitError(f"is {value!r}", "True or False")


def _seconds(value: Any) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if value is None:
        return 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise UnfitError(f"is {value!r}", "a timedelta, or seconds, above 0")
    return float(seconds)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "set": _mapping,
    "drop": _names,
    "reset": _names,
    **dict.fromkeys(FLAGS, _flag),
    "watch_timeout": _seconds,
}


def _problems_of(name: str, read: Callable[[Any], object], value: Any) -> Iterator[Problem]:
    try:
        read(value)
    except UnfitError as error:
        yield Problem(name, str(error), error.hint)
    except ConfigurationError as error:
        yield from error.problems


def _demand(problems: list[Problem]) -> None:
    if problems:
        raise ConfigurationError("AlterConnectionRestartOperator cannot take its arguments", problems)
