"""What is checked before a connection is changed: the connection itself, and each sink that uses it with it.

In memory and without side effects, by the validation that ``ValidateConnectionOperator`` uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.checks.check import Report
from airflow_provider_sinks.core.checks.fields import ConnectionFields, Given
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError
from airflow_provider_sinks.core.spec import SinkSpec
from airflow_provider_sinks.core.witness import Witness
from airflow_provider_sinks.hooks.connections import READERS, connection_types
from airflow_provider_sinks.operators.dependent_sinks import DependentSinks

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_PARALLEL = 4


def check_connection(new: ConnectionFields, log: Logger) -> None:
    """Check a connection with its new options by itself.

    :raises SinkError: a check failed.
    """
    from airflow_provider_sinks.clients.preflight import validate

    report = validate({new.conn_id: new})
    log.info("connection %s:\n%s", new.conn_id, report.table())
    if error := report.error():
        raise error


def check_sinks(sinks: DependentSinks, new: ConnectionFields, log: Logger) -> None:
    """Check each sink that uses a connection with its new options.

    :raises SinkError: a check of a sink failed; with the failures of all.
    """
    from airflow_provider_sinks.clients.preflight import validate

    asked = [(spec, _connections(spec, new), witness) for spec, witness in _known(sinks)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        reports = list(pool.map(lambda one: validate(one[1], one[0], witness=one[2]), asked))
    failed = {}
    for (spec, _, _), report in zip(asked, reports, strict=True):
        log.info("sink %s:\n%s", spec.name, report.table())
        if report.failed:
            failed[spec.name] = report
    if failed:
        raise _cannot_run(new.conn_id, failed)


def _known(sinks: DependentSinks) -> list[tuple[SinkSpec, Witness | None]]:
    """Return the sinks whose specs are known before their tasks run."""
    return [
        (SinkSpec.parse(dependent.spec), _witness(memory))
        for dependent, memory in sinks.look()
        if dependent.spec is not None
    ]


def _witness(memory: Mapping[str, Any] | None) -> Witness | None:
    return Witness.from_mapping(memory) if memory and "generation" in memory else None


def _connections(spec: SinkSpec, new: ConnectionFields) -> dict[str, Given]:
    """Return the connections of a sink, the new one over the stored one. Reads in the task's own thread."""
    given: dict[str, Given] = {}
    for conn_id, kind in connection_types(spec).items():
        try:
            given[conn_id] = new if conn_id == new.conn_id else READERS[kind](conn_id)
        except SinkError as error:
            given[conn_id] = error
    return given


def _cannot_run(conn_id: str, failed: Mapping[str, Report]) -> SinkError:
    problems = [
        Problem(f"{sink}: {check.subject}: {check.name}", check.detail, check.hint)
        for sink, report in failed.items()
        for check in report.failed
    ]
    primary = f'connection "{conn_id}" was not altered: {_sinks(failed)} could not run on its new options'
    final = ConfigurationError(primary, problems)
    if all(check.retryable for report in failed.values() for check in report.failed):
        return UnavailableError(primary, final.detail)
    return final


def _sinks(failed: Mapping[str, Report]) -> str:
    names = ", ".join(f'"{sink}"' for sink in sorted(failed))
    return f"sink {names}" if len(failed) == 1 else f"sinks {names}"
