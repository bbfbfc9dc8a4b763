"""How an alteration ended: what the task returns, and the error that it ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from airflow_provider_sinks.core.alter.backup import Mark, before_id
from airflow_provider_sinks.core.alter.dependents import Return
from airflow_provider_sinks.core.alter.steps import End
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError
from airflow_provider_sinks.operators.alter.alteration import Altered
from airflow_provider_sinks.operators.alter.arguments import AlterOrder
from airflow_provider_sinks.operators.alter.dependent_sinks import Returns


def to_data(order: AlterOrder, altered: Altered) -> dict[str, Any]:
    """Return the result as plain JSON values: names of options, never values."""
    return {
        "connection": order.conn_id,
        "dry_run": order.is_dry_run,
        "end": str(altered.end) if altered.end else "planned",
        "changed": list(altered.changed),
        "steps": [str(step) for step in altered.steps],
        "on_new": _returns(altered.new),
        "on_old": _returns(altered.old),
    }


def error_of(order: AlterOrder, altered: Altered, mark: Mark, holder_state: str) -> SinkError | None:
    """Return the error that a task ends with, or ``None`` when it did what it was asked for.

    :param mark: who is altering the connection.
    :param holder_state: the state of that task, when it is another one.
    """
    connection = f'connection "{order.conn_id}"'
    culprits = altered.new.culprits if altered.new else {}
    problems = [*_problems(culprits, "on the new options")]
    match altered.end:
        case None | End.ALTERED | End.UNCHANGED:  # None: a dry run
            return None
        case End.LOCKED:
            return _locked(order.conn_id, mark, holder_state)
        case End.OVERTAKEN:
            what = f"{connection} was changed by somebody else meanwhile, and was left as they made it"
            hint = "Look at it in Airflow's UI, and run this again if it is still wanted."
            return ConfigurationError(what, hint=hint)
        case End.NOT_UNDONE:
            what = f"{connection} has its new options, and not all sinks run on them"
            return ConfigurationError(what, problems, "rollback=False")
        case End.UNDONE:
            missing = altered.old.missing if altered.old else {}
            problems += _problems(missing, "back on the old options")
            hint = "" if altered.new else "An earlier try decided that; its log says why."
            return ConfigurationError(f"{connection} has its old options again", problems, hint)
    assert_never(altered.end)


def _locked(conn_id: str, mark: Mark, holder_state: str) -> SinkError:
    before = before_id(conn_id)
    if not mark.holder.dag_id:
        why = f"connection {before} exists, and no alteration made it"
    else:
        why = f"{mark.holder} is altering it since {mark.at}; that task is {holder_state}"
    hint = (
        "Let it end; if it is over, clear it: it goes on, or puts the old options back. If that cannot be, "
        f"see whether the options of {before} must come back, and delete it."
    )
    return ConfigurationError(f'connection "{conn_id}" was not altered', [Problem("", why)], hint)


def _problems(missing: Mapping[str, Return], where: str) -> Iterator[Problem]:
    for sink, found in missing.items():
        detail = f": {found.detail}" if found.detail else ""
        yield Problem(f'sink "{sink}"', f"did not come {where}: {found.why}{detail}", found.hint)


def _returns(returns: Returns | None) -> Mapping[str, dict[str, str]] | None:
    return None if returns is None else {sink: _plain(found) for sink, found in returns.by_sink.items()}


def _plain(found: Return) -> dict[str, str]:
    return {"came": str(found.came), "why": found.why, "detail": found.detail, "hint": found.hint}
