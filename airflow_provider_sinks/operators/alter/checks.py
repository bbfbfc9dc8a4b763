"""What is checked before a connection is changed: the connection itself, and each sink that uses it with it.

In memory and without side effects, by the validation that ``ValidateConnectionOperator`` uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.registry import connection_types
from airflow_provider_sinks.core.checks.check import Check, Report
from airflow_provider_sinks.core.checks.sql import NOT_IN_ALTERATION, not_wanted
from airflow_provider_sinks.core.connection.fields import ConnectionFields, Given
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import usable_options
from airflow_provider_sinks.metadata.memory import Memory
from airflow_provider_sinks.operators.alter.dependent_sinks import DependentSinks

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_PARALLEL = 4


@dataclass(frozen=True)
class _Asked:
    """A sink that is checked, with the connections that it would get."""

    spec: SinkSpec
    witness: Witness | None
    connections: Mapping[str, Given]


def demand_named(sinks: DependentSinks, connection: ConnectionFields) -> None:
    """Refuse a connection that may be anybody's, unless a sink names it for what its type is there for.

    One of type ``http`` may lead to Airflow's own API, or to any service that Airflow talks to.

    :raises ConfigurationError: no sink names it.
    """
    if not connection.of_known_type().alterable.serves_others:
        return
    if not any(_names(found.spec, connection) for found in sinks.seen if found.spec is not None):
        what = f"is {connection.conn_type}, and no sink names it: it may be there for somebody else"
        raise ConfigurationError(
            f'connection "{connection.conn_id}" was not altered',
            [Problem("conn_type", what)],
            "Change it in Airflow's UI.",
        )


def _names(spec: SinkSpec, connection: ConnectionFields) -> bool:
    with suppress(ConfigurationError):  # a sink whose target cannot be loaded here tells nothing
        return connection_types(spec).get(connection.conn_id) == connection.conn_type
    return False


def check_connection(new: ConnectionFields, log: Logger) -> None:
    """Check a connection with its new options by itself.

    :raises SinkError: a check failed.
    """
    from airflow_provider_sinks.connectors.preflight import validate

    report = validate({new.conn_id: new})
    log.info("connection %s:\n%s", new.conn_id, report.table())
    if error := report.error():
        raise error


def check_sinks(sinks: DependentSinks, old: ConnectionFields, new: ConnectionFields, log: Logger) -> None:
    """Check each sink that uses a connection with its new options.

    What fails with the old options too is said, and stops nothing: the alteration makes it no worse, and may
    be the first half of its repair.

    :raises SinkError: a check failed that does not fail with the old options; with the failures of all sinks.
    """
    after = [_Asked(spec, witness, _connections(spec, new)) for spec, witness in _known(sinks)]
    failed = {}
    for asked, made in zip(after, _validated(after), strict=True):
        sink = asked.spec.name
        report = replace(made, checks=(*made.checks, not_wanted(sink, NOT_IN_ALTERATION)))
        log.info("sink %s:\n%s", sink, report.table())
        if report.failed:
            failed[sink] = report.failed
    before = [
        replace(asked, connections=_connections(asked.spec, old))
        for asked in after
        if asked.spec.name in failed
    ]
    for asked, report in zip(before, _validated(before), strict=True):
        sink = asked.spec.name
        failed[sink] = _only_new(sink, failed[sink], report.failed, log)
    if worse := {sink: checks for sink, checks in failed.items() if checks}:
        raise _cannot_run(new.conn_id, worse)


def _validated(asked: Sequence[_Asked]) -> list[Report]:
    """Make all checks of some sinks, a few sinks at a time."""
    from airflow_provider_sinks.connectors.preflight import validate

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(lambda one: validate(one.connections, one.spec, witness=one.witness), asked))


def _only_new(sink: str, now: Sequence[Check], before: Sequence[Check], log: Logger) -> tuple[Check, ...]:
    """Return the failed checks that do not fail with the old options."""
    known = {(check.subject, check.family, check.name) for check in before}
    old = [check for check in now if (check.subject, check.family, check.name) in known]
    if old:
        names = ", ".join(check.name for check in old)
        log.warning("sink %s fails on its old options too, which stops nothing: %s", sink, names)
    return tuple(check for check in now if check not in old)


def _known(sinks: DependentSinks) -> list[tuple[SinkSpec, Witness | None]]:
    """Return the sinks whose specs are known before their tasks run."""
    return [
        (dependent.spec, _witness(memory)) for dependent, memory in sinks.look() if dependent.spec is not None
    ]


def _witness(memory: Mapping[str, Any] | None) -> Witness | None:
    return Memory.from_mapping(memory).witness if memory else None


def _connections(spec: SinkSpec, new: ConnectionFields) -> dict[str, Given]:
    """Return the connections of a sink, the new one over the stored one. Reads in the task's own thread."""
    given: dict[str, Given] = {}
    for conn_id, conn_type in connection_types(spec).items():
        try:
            given[conn_id] = new if conn_id == new.conn_id else usable_options(conn_id, conn_type)
        except SinkError as error:
            given[conn_id] = error
    return given


def _cannot_run(conn_id: str, failed: Mapping[str, Sequence[Check]]) -> SinkError:
    problems = [
        Problem(f"{sink}: {check.subject}: {check.name}", check.detail, check.hint)
        for sink, checks in failed.items()
        for check in checks
    ]
    primary = f'connection "{conn_id}" was not altered: {_sinks(failed)} could not run on its new options'
    final = ConfigurationError(primary, problems)
    if all(check.retryable for checks in failed.values() for check in checks):
        return UnavailableError(primary, final.detail)
    return final


def _sinks(failed: Collection[str]) -> str:
    names = ", ".join(f'"{sink}"' for sink in sorted(failed))
    return f"sink {names}" if len(failed) == 1 else f"sinks {names}"
