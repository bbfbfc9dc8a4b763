"""All checks of sinks: Spark's connection, their own connections, and their SQL by Spark itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_provider_sinks.connectors.preflight import VALIDATION_SECONDS, validate
from airflow_provider_sinks.core.checks.check import Check, Report
from airflow_provider_sinks.core.checks.sql import not_wanted, sql_checks
from airflow_provider_sinks.core.connection.fields import Given
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.query.questions import AskSpark, NoAnswer, SqlAnswer, SqlQuestion
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks import connections
from airflow_provider_sinks.operators.validate.spark_checks import spark_checks, submit_command
from airflow_provider_sinks.operators.validate.sql_questions import ask_spark
from airflow_provider_sinks.operators.validate.target_columns import target_column_checks
from airflow_provider_sinks.operators.validate.target_schemas import target_schema_checks

_LEAST_SECONDS = 1.0
NOBODY_REMEMBERS: Mapping[str, Witness] = {}
"""For sinks of which nothing was asked."""


def sink_report(
    spec: SinkSpec,
    spark_conn_id: str,
    timeout_seconds: float = VALIDATION_SECONDS,
    ask: AskSpark = AskSpark.AUTO,
    witness: Witness | None = None,
) -> Report:
    """Return all checks of a sink.

    :param spark_conn_id: the Airflow connection of type ``spark`` that runs the sink.
    :param timeout_seconds: how long all checks together may take.
    :param ask: whether Spark is asked about the SQL.
    :param witness: what Airflow remembers of the sink.
    """
    witnesses = {spec.name: witness} if witness is not None else {}
    return sink_reports([spec], spark_conn_id, timeout_seconds, ask, witnesses)[0]


def sink_reports(
    specs: Sequence[SinkSpec],
    spark_conn_id: str,
    timeout_seconds: float = VALIDATION_SECONDS,
    ask: AskSpark = AskSpark.AUTO,
    witnesses: Mapping[str, Witness] = NOBODY_REMEMBERS,
) -> list[Report]:
    """Return all checks of some sinks. One Spark answers for all of them: it takes seconds to start.

    :param timeout_seconds: how long the checks may take, for each of them.
    :param witnesses: what Airflow remembers of the sinks, by name.
    """
    over_at = time.monotonic() + timeout_seconds * len(specs)
    spark = tuple(spark_checks(spark_conn_id))
    reports: list[Report] = []
    for spec in specs:
        seconds = min(timeout_seconds, _left(over_at))
        wants_types = ask is not AskSpark.NEVER
        found = validate(
            given(spec.connections),
            spec,
            witness=witnesses.get(spec.name),
            seconds=seconds,
            with_types=wants_types,
            start_decides=True,
        )
        reports.append(replace(found, checks=(*spark, *found.checks)))
    lookups = [report.lookups for report in reports]
    written = [_with_source(spec, report) for spec, report in zip(specs, reports, strict=True)]
    answers = _answers(written, lookups, submit_command(spark_conn_id), _left(over_at), ask)
    return [
        replace(report, checks=(*report.checks, *_behind(spec, answer, report, ask, _left(over_at))))
        for spec, report, answer in zip(specs, reports, answers, strict=True)
    ]


def spark_answer(spec: SinkSpec, spark_conn_id: str, seconds: float = VALIDATION_SECONDS) -> SqlAnswer:
    """Return what Spark says about the SQL of a sink, for which its lookups and schemas are looked at.

    :param seconds: how long all of it may take.
    """
    over_at = time.monotonic() + seconds
    found = validate(given(spec.connections), spec, seconds=seconds, with_types=True)
    whole, command = _with_source(spec, found), submit_command(spark_conn_id)
    (answer,) = _answers([whole], [found.lookups], command, _left(over_at), AskSpark.AUTO)
    return answer if answer is not None else NoAnswer("Spark was not asked")


def _with_source(spec: SinkSpec, report: Report) -> SinkSpec:
    """Return a sink with the schemas of its source written down, as far as a registry has told them."""
    found = report.source_schemas
    return spec.with_source_schemas(found.get(Part.VALUE), found.get(Part.KEY)) if found else spec


def _behind(
    spec: SinkSpec, answer: SqlAnswer | None, report: Report, ask: AskSpark, seconds: float
) -> Iterator[Check]:
    """Make the checks that need what Spark said."""
    if answer is None:
        yield not_wanted(spec.name)
    else:
        yield from sql_checks(spec.name, answer, ask)
    yield from target_schema_checks(spec, answer, seconds)
    yield from target_column_checks(spec, answer, report, seconds)


def _left(over_at: float) -> float:
    return max(over_at - time.monotonic(), _LEAST_SECONDS)


def given(conn_ids: Sequence[str]) -> Mapping[str, Given]:
    """Return connections as they are stored, or why they could not be read."""
    return {conn_id: read(conn_id) for conn_id in conn_ids}


def read(conn_id: str) -> Given:
    """Return a connection as it is stored, or why it could not be read."""
    try:
        return connections.fields(conn_id)
    except SinkError as error:
        return error


def _answers(
    specs: Sequence[SinkSpec],
    lookups: Sequence[Mapping[str, bytes]],
    command: str,
    seconds: float,
    ask: AskSpark,
) -> list[SqlAnswer | None]:
    if ask is AskSpark.NEVER:
        return [None] * len(specs)
    answers: dict[int, SqlAnswer] = {}
    questions: dict[int, SqlQuestion] = {}
    for number, (spec, types) in enumerate(zip(specs, lookups, strict=True)):
        if missing := [name for name in spec.lookups if name not in types]:
            answers[number] = NoAnswer(f"what lookup {', '.join(missing)} holds is not known", retryable=True)
        elif spec.source.kafka.lacks_schemas:
            answers[number] = NoAnswer("the schema of the source is not known", retryable=True)
        else:
            questions[number] = SqlQuestion(spec, types)
    if questions:
        found = ask_spark(list(questions.values()), command, seconds=seconds)
        answers |= dict(zip(questions, found, strict=True))
    return [answers[number] for number in range(len(specs))]
