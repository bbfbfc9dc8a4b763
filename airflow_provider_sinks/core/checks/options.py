"""The first check of a connection: its options, whether they are stored yet or not."""

from __future__ import annotations

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.fields import ConnectionFields, Given
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError


def options_check(
    conn_id: str, given: Given | None, wanted: str | None = None
) -> tuple[Check, ConnectionOptions | None]:
    """Judge the options of a connection: known and allowed, of the right type, complete, without a clash.

    Files that they name are read: a job gets the text.

    :param wanted: the type that the sink needs there; ``None`` takes any.
    :return: the check, and the options if it passed.
    """
    checks = Checks(conn_id, Family.OPTIONS)
    try:
        options = _demand(conn_id, given).usable()
    except SinkError as error:
        return checks.judged_by("options", error), None
    if wanted not in (None, options.conn_type):
        what = f"is of type {options.conn_type}"
        return checks.fails("options", what, f"a sink needs {wanted} here"), None
    return checks.passes("options", options.summary), options


def _demand(conn_id: str, given: Given | None) -> ConnectionOptions:
    if given is None:
        raise ConfigurationError(f'connection "{conn_id}" was not given')
    if isinstance(given, SinkError):
        raise given
    return given.options() if isinstance(given, ConnectionFields) else given
