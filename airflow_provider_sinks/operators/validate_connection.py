"""Checks the connections of a sink, all at once and without side effects, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from airflow.sdk import BaseOperator
from pydantic import PlainValidator

from airflow_provider_sinks.arguments import plain
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Report
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.query.questions import AskSpark
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks import connections
from airflow_provider_sinks.metadata.memory import SinkMemory
from airflow_provider_sinks.operators.arguments import (
    Arguments,
    ConnId,
    ConnIdOrNone,
    Seconds,
    SinkArgumentOrNone,
    choice,
)
from airflow_provider_sinks.operators.map_index import NamedInstances
from airflow_provider_sinks.operators.validate.sink_report import read, sink_report
from airflow_provider_sinks.operators.validate.spark_checks import spark_checks
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

_XCOM_KEY = "return_value"


class ValidateConnectionOperator(NamedInstances, BaseOperator):
    """Check the connections of a sink, or one connection, step by step, and say what each step found.

    Options, name, TCP, TLS, user, cluster; for a sink its topics, tables and every right that it needs, and
    whether Spark takes its SQL.
    Nothing is created: no topic, table, record, group or transactional id. Passing is not a promise: the job
    connects and decides for itself. Fails at once for what a person must change; what may pass later (a
    broker that is away) is retried.

    All checks are made. They are a table in the log and the task's XCom, also when the task fails: a list of
    ``{subject, family, name, outcome, detail, hint, seconds, retryable}``, where ``outcome`` is ``pass``,
    ``fail``, ``unknown`` or ``skipped``. Only ``fail`` fails the task.
    Can be mapped: ``partial(...).expand(conn_id=[...])``, or over sinks.

    :param sink: the sink: a ``Sink``, or a mapping with the same keys. (templated)
    :param conn_id: instead of a sink: the id of one connection. (templated)
    :param spark_conn_id: the Airflow connection of type ``spark`` that runs the sink. (templated)
    :param timeout_seconds: how long all checks together may take.
    :param ask_spark: whether Spark itself analyses the SQL of the sink, as the job would: ``auto`` where it
        is on the worker, ``always``, or ``never``; it takes a JVM for some seconds.
    """

    template_fields: Sequence[str] = ("sink", "conn_id", "spark_conn_id")
    template_fields_renderers: ClassVar[dict[str, str]] = {"sink": "json"}
    ui_color = "#dfe8f7"

    def __init__(
        self,
        *,
        sink: SinkSpec | dict[str, Any] | str | None = None,
        conn_id: str | None = None,
        spark_conn_id: str = "spark_default",
        timeout_seconds: float = 60.0,
        ask_spark: str = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sink = plain(sink)
        self.declared = sink
        self.conn_id = conn_id
        self.spark_conn_id = spark_conn_id
        self.timeout_seconds = timeout_seconds
        self.ask_spark = ask_spark
        self._read(sink, is_rendered=False)

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Make all checks, say what they found, and fail if one of them failed."""
        with airflow_errors():
            report = self._check()
            self.log.info("%s:\n%s", report.title, report.table())
            error = report.error()
            if error is not None:
                # A task that fails returns nothing; its report is wanted then most of all.
                context["ti"].xcom_push(key=_XCOM_KEY, value=report.to_data())
                raise error
        return report.to_data()

    def _check(self) -> Report:
        given = self._read(self.sink, is_rendered=True)
        if given.sink is None:
            return _one(str(given.conn_id), given.timeout_seconds)
        memory = SinkMemory(given.sink.name, None, self.log)
        seconds, ask = given.timeout_seconds, given.ask_spark
        return sink_report(given.sink, given.spark_conn_id, seconds, ask, memory.witness())

    def _read(self, sink: object, *, is_rendered: bool) -> ValidateArguments:
        """Judge what is certain: all of it when the task runs, what is no template when the DAG is read."""
        given = {name: getattr(self, name) for name in ValidateArguments.model_fields}
        primary = "ValidateConnectionOperator does not know what to check"
        others = _subject_problems(sink, self.conn_id)
        return ValidateArguments.read(primary, {**given, "sink": sink}, others, is_rendered=is_rendered)


def _ask(value: object) -> AskSpark:
    return AskSpark(choice(value, tuple(AskSpark)))


class ValidateArguments(Arguments):
    """What is judged of the arguments."""

    sink: SinkArgumentOrNone = None
    conn_id: ConnIdOrNone = None
    spark_conn_id: ConnId
    timeout_seconds: Seconds
    ask_spark: Annotated[AskSpark, PlainValidator(_ask)]


def _one(conn_id: str, seconds: float) -> Report:
    found = read(conn_id)
    if isinstance(found, ConnectionFields) and found.conn_type in connections.SPARK_TYPES:
        return Report(f'connection "{conn_id}"', tuple(spark_checks(conn_id)))
    return validate({conn_id: found}, seconds=seconds)


def _subject_problems(sink: object, conn_id: object) -> Iterator[Problem]:
    if (sink is None) == (conn_id is None):
        given = "neither is" if sink is None else "both are"
        yield Problem("sink, conn_id", f"{given} given", "give one of them")
