"""Checks the connections of a sink, all at once and without side effects, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from airflow_provider_sinks.arguments import is_template, parse, plain, sink_problems
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec import SinkSpec
from airflow_provider_sinks.operators.checks import Check, connection_checks, report, sink_checks, verdict
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

_XCOM_KEY = "return_value"


class ValidateConnectionOperator(BaseOperator):
    """Check the connections of a sink, or one connection: options, reach, authentication, what they can see.

    No topic, table, record or group is created. Passing is not a promise: the job connects and decides for
    itself. Fails at once for what a person must change; what may pass later (a broker that is away, a topic
    that cannot be seen) is retried.

    The checks, passed and failed, are the task's XCom: a list of ``{name, ok, what, hint, retryable}``. Each
    has a time limit (``checks.CHECK_SECONDS``): an address that swallows everything is a line of the report.
    Can be mapped: ``partial(...).expand(conn_id=[...])``, or over sinks.

    :param sink: the sink: a ``Sink``, or a mapping with the same keys. (templated)
    :param conn_id: instead of a sink: the id of one connection. (templated)
    :param spark_conn_id: the Airflow connection of type ``spark`` that runs the sink. (templated)
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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _demand_valid(sink, conn_id, spark_conn_id)
        self.sink = plain(sink)
        self.conn_id = conn_id
        self.spark_conn_id = spark_conn_id

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Make all checks, say what they found, and fail if one of them failed."""
        with airflow_errors():
            subject, checks = self._check()
            self.log.info("%s:\n%s", subject, report(checks))
            data = [check.to_mapping() for check in checks]
            error = verdict(subject, checks)
            if error is not None:
                # A task that fails returns nothing; its report is wanted then most of all.
                context["ti"].xcom_push(key=_XCOM_KEY, value=data)
                raise error
        return data

    def _check(self) -> tuple[str, list[Check]]:
        _demand_valid(self.sink, self.conn_id, self.spark_conn_id)
        if self.conn_id is not None:
            return f'connection "{self.conn_id}"', list(connection_checks(self.conn_id))
        spec = parse(self.sink)
        return f'sink "{spec.name}"', list(sink_checks(spec, self.spark_conn_id))


def _demand_valid(sink: object, conn_id: object, spark_conn_id: object) -> None:
    """Judge what is certain: all of it when the task runs, and what is no template when the DAG is read."""
    problems = [*_subject_problems(sink, conn_id)]
    if sink is not None and not is_template(sink):
        problems += sink_problems("sink", sink)
    if conn_id is not None and not is_template(conn_id):
        problems += _id_problems("conn_id", conn_id)
    if not is_template(spark_conn_id):
        problems += _id_problems("spark_conn_id", spark_conn_id)
    if problems:
        raise ConfigurationError("ValidateConnectionOperator does not know what to check", problems)


def _subject_problems(sink: object, conn_id: object) -> Iterator[Problem]:
    if (sink is None) == (conn_id is None):
        given = "neither is" if sink is None else "both are"
        yield Problem("sink, conn_id", f"{given} given", "give one of them")


def _id_problems(name: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, str) or not value.strip():
        yield Problem(name, f"is {value!r}", "the id of an Airflow connection")
