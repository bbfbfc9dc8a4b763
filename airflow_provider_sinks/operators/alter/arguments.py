"""What the user of ``AlterConnectionRestartOperator`` asks for: arguments or a statement, as one order.

A form of Airflow's UI gives texts, so a text stands for what it says: ``"true"``, ``"a, b"``, ``'{"a": 1}'``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from airflow_provider_sinks.arguments import is_template
from airflow_provider_sinks.core.alter.backup import before_id
from airflow_provider_sinks.core.alter.changes import Change, DropOption, ResetOption, Secret, SetOption
from airflow_provider_sinks.core.alter.leave import Leave, leave_problems
from airflow_provider_sinks.core.alter.statement import Statement, parse_statement
from airflow_provider_sinks.core.alter.steps import Wishes
from airflow_provider_sinks.core.connection.airflow_account import account_problems
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.operators.arguments import (
    Arguments,
    Duration,
    FormFlagOrNone,
    FormMapping,
    FormNames,
)

FLAGS = ("validate", "dry_run", "restart", "rollback")
_CHANGES = ("set", "drop", "reset")


def _alterable(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnfitError(f"is {value!r}", "the id of an Airflow connection")
    try:
        before_id(value)
    except ConfigurationError as error:
        raise UnfitPartsError(error.problems) from None
    return value


class AlterArguments(Arguments):
    """What is judged of the arguments one by one."""

    set: FormMapping
    drop: FormNames
    reset: FormNames
    checked: FormFlagOrNone = Field(alias="validate")
    dry_run: FormFlagOrNone
    restart: FormFlagOrNone
    rollback: FormFlagOrNone
    watch_timeout: Duration
    conn_id: Annotated[str | None, PlainValidator(_alterable)]

    @property
    def flags(self) -> dict[str, bool]:
        """The flags, by the names of the statement."""
        values = (self.checked, self.dry_run, self.restart, self.rollback)
        return dict(zip(FLAGS, values, strict=True))


def _read(arguments: Mapping[str, Any], *, is_rendered: bool) -> AlterArguments:
    primary = "AlterConnectionRestartOperator cannot take its arguments"
    account = account_problems(arguments["conn_id"], arguments["airflow_api_conn_id"])
    others = [*_subject_problems(arguments), *account, *leave_problems(arguments)]
    return AlterArguments.read(primary, arguments, others, is_rendered=is_rendered)


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
    _read(arguments, is_rendered=False)
    statement = arguments["statement"]
    if statement is not None and not is_template(statement):
        _demand_no_account(_statement(statement), arguments)


def read_order(arguments: Mapping[str, Any]) -> AlterOrder:
    """Return the order, once templates are rendered.

    :param arguments: all arguments of the operator, by name.
    :raises ConfigurationError: with all problems at once.
    """
    given = _read(arguments, is_rendered=True)
    text = arguments["statement"]
    statement = _statement(text) if text else Statement(str(given.conn_id), _changes(given))
    flags = {**given.flags, **statement.flags}
    before_id(statement.conn_id)
    _demand_no_account(statement, arguments)
    return AlterOrder(
        conn_id=statement.conn_id,
        changes=statement.changes,
        wishes=Wishes(flags["validate"], flags["restart"], flags["rollback"]),
        is_dry_run=flags["dry_run"],
        watch_seconds=given.watch_timeout,
        leave=Leave(arguments["keep_secrets"], arguments["secret_prefix"], tuple(arguments["allowed_files"])),
    )


def _demand_no_account(statement: Statement, arguments: Mapping[str, Any]) -> None:
    if problems := [*account_problems(statement.conn_id, arguments["airflow_api_conn_id"])]:
        raise ConfigurationError(f'connection "{statement.conn_id}" cannot be altered', problems)


def _changes(given: AlterArguments) -> tuple[Change, ...]:
    sets = [SetOption(name, _value(value)) for name, value in given.set.items()]
    drops = [DropOption(name) for name in given.drop]
    return (*sets, *drops, *(ResetOption(name) for name in given.reset))


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
