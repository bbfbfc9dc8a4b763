"""Compares the columns of a sink's target with those of its query, once Spark has told these."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from airflow_provider_sinks.clients.time_limit import within
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.core.checks.check import Check, Checks, Family, Report
from airflow_provider_sinks.core.checks.columns import NAME, column_check
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.evolution import Compatible, SchemaDiff
from airflow_provider_sinks.core.query.questions import SqlAnswer, Taken
from airflow_provider_sinks.core.spec.parts import EvolvingTarget
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import resolve

_UNKNOWN = (
    "Spark was not asked for the types of the columns; the start compares them before it makes anything"
)
_NOT_REACHED = "a check of the target failed"


def target_column_checks(
    spec: SinkSpec, answer: SqlAnswer | None, report: Report, seconds: float
) -> Iterator[Check]:
    """Judge the columns of a target that can be altered; alters nothing.

    :param answer: what Spark said about the SQL; ``None`` where it was not asked.
    :param report: of the connections: what was not let through there is not asked here.
    """
    if not isinstance(spec.target.options, EvolvingTarget):
        return
    checks = Checks(spec.name, Family.SCHEMAS)
    if not isinstance(answer, Taken):
        yield checks.skips(NAME, _UNKNOWN)
        return
    if any(check.subject in _subjects(spec) for check in report.failed):
        yield checks.skips(NAME, _NOT_REACHED)
        return
    begun, output = time.monotonic(), json.loads(answer.output)
    try:
        diff = within(seconds, lambda: _diff(spec, output))
    except SinkError as error:
        yield checks.judged_by(NAME, error, time.monotonic() - begun)
        return
    yield column_check(spec.name, diff, time.monotonic() - begun)


def _subjects(spec: SinkSpec) -> tuple[str, ...]:
    return (spec.target_connection or f"target {spec.target_kind}",)


def _diff(spec: SinkSpec, output: dict[str, Any]) -> SchemaDiff:
    with closing(connect(spec, resolve(spec))) as target:
        evolvable = target.as_schema_evolvable()
        return evolvable.diff(output) if evolvable is not None else Compatible()
