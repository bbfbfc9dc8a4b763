"""Asks a target's registry what it says about the schemas of a sink, once Spark has told the columns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

from airflow_provider_sinks.clients.time_limit import within
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.schemas import schema_checks
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.query.questions import SqlAnswer, Taken
from airflow_provider_sinks.core.schemas.plan import SchemaPlan
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import resolve

_NAME = "schemas of the target"
_UNKNOWN = "Spark was not asked for the types of the columns; the start asks before it registers anything"


def target_schema_checks(spec: SinkSpec, answer: SqlAnswer | None, seconds: float) -> Iterator[Check]:
    """Judge the schemas that a start would register; registers nothing.

    :param answer: what Spark said about the SQL; ``None`` where it was not asked.
    """
    if not spec.target_registries:
        return
    checks = Checks(spec.name, Family.SCHEMAS)
    if not isinstance(answer, Taken):
        yield checks.skips(_NAME, _UNKNOWN)
        return
    begun, output = time.monotonic(), json.loads(answer.output)
    try:
        plans = within(seconds, lambda: _plans(spec, output))
    except SinkError as error:
        yield checks.judged_by(_NAME, error, time.monotonic() - begun)
        return
    yield from schema_checks(spec.name, plans, time.monotonic() - begun)


def _plans(spec: SinkSpec, output: dict[str, object]) -> tuple[SchemaPlan, ...]:
    with closing(connect(spec, resolve(spec))) as target:
        aware = target.as_schema_registry_aware()
        return tuple(aware.plan(output)) if aware is not None else ()
