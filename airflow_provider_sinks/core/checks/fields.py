"""A connection as Airflow stores it, in memory: what validation takes, whether it is stored yet or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.kafka_fields import shown_key, unused, whole
from airflow_provider_sinks.core.connection.resolved import ConnectionOptions, KafkaOptions, PostgresOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError

KAFKA = "kafka"
POSTGRES = "postgres"

GENERIC = "generic"
"""What Airflow's commands and pages make of a type whose provider is not installed, with a warning."""

_BRINGS = {
    KAFKA: "airflow-provider-sinks[kafka]",
    POSTGRES: "airflow-provider-sinks[postgres]",
    "http": "apache-airflow-providers-http",
    "spark": "apache-airflow-providers-apache-spark",
}
"""What to install so that Airflow knows a type."""


@dataclass(frozen=True, repr=False)
class ConnectionFields:
    """The fields of an Airflow connection.

    :param extra: a mapping, or the JSON text of one.
    :param is_key_masked: whether Airflow masks a private key in the extra: it does if it was told to.
    """

    conn_id: str
    conn_type: str
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = None
    schema: str | None = None
    extra: Mapping[str, Any] | str | None = None
    is_key_masked: bool = False

    def options(self) -> ConnectionOptions:
        """Return what a sink gets of it.

        :raises ConfigurationError: with all problems at once.
        """
        if self.conn_type == KAFKA:
            return self._kafka_options()
        if self.conn_type == POSTGRES:
            return PostgresOptions.from_connection(
                self.conn_id,
                host=self.host,
                port=self.port,
                login=self.login,
                password=self.password,
                schema=self.schema,
                extra=read_extra(self.conn_id, self.extra),
            )
        raise of_another_type(self.conn_id, self.conn_type, KAFKA, POSTGRES)

    def whole_extra(self) -> dict[str, Any]:
        """Return the extra, and with it the options that stand in fields of a ``kafka`` connection.

        :raises ConfigurationError: it is not a JSON object.
        """
        extra = read_extra(self.conn_id, self.extra)
        return whole(extra, self.login, self.password) if self.conn_type == KAFKA else dict(extra)

    def _kafka_options(self) -> KafkaOptions:
        extra = read_extra(self.conn_id, self.extra)
        shown = shown_key(extra, is_key_masked=self.is_key_masked)
        problems = [shown] if shown else []
        options = KafkaOptions.from_connection_extra(self.whole_extra(), self.conn_id, problems)
        dropped = sorted({*options.dropped, *unused(extra, self.login, self.password)})
        return replace(options, dropped=tuple(dropped))

    def __repr__(self) -> str:
        return f"ConnectionFields(conn_id={self.conn_id!r}, conn_type={self.conn_type!r})"


def of_another_type(conn_id: str, found: str | None, *needed: str) -> ConfigurationError:
    """Return the error of a connection that is of none of the types that are needed."""
    hint = f"{' or '.join(needed)} is needed here"
    if found == GENERIC:
        packages = " ".join(f'"{_BRINGS[kind]}"' for kind in needed if kind in _BRINGS)
        hint += (
            "; Airflow makes a type generic when it does not know it: "
            f"pip install {packages}, then delete the connection and add it again"
        )
    problem = Problem("conn_type", f"is {found}", hint)
    return ConfigurationError(f'connection "{conn_id}" is of another type', [problem])


Given = ConnectionFields | KafkaOptions | PostgresOptions | SinkError
"""A connection to validate: as it is stored, as a driver gets it, or why it could not be read."""


def read_extra(conn_id: str, extra: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the extra of a connection; Airflow's own reading takes broken JSON for an empty one.

    :raises ConfigurationError: it is not a JSON object.
    """
    if isinstance(extra, Mapping):
        return extra
    try:
        read = json.loads(extra or "{}")
    except ValueError as error:
        what = f"is not JSON: {error}"
    else:
        if isinstance(read, dict):
            return read
        what = "is not a JSON object"
    raise ConfigurationError(f'connection "{conn_id}" cannot be read', [Problem("extra", what)])


def options_check(
    conn_id: str, given: Given | None, wanted: type[ConnectionOptions] | None = None
) -> tuple[Check, ConnectionOptions | None]:
    """Judge the options of a connection: known and allowed, of the right type, complete, without a clash.

    Files that they name are read: a job gets the text.

    :param wanted: what the sink needs there; ``None`` takes any.
    :return: the check, and the options if it passed.
    """
    checks = Checks(conn_id, Family.OPTIONS)
    try:
        options = usable(_demand(conn_id, given))
    except SinkError as error:
        return checks.judged_by("options", error), None
    if wanted is not None and not isinstance(options, wanted):
        kind, needed = _kind(type(options)), _kind(wanted)
        return checks.fails("options", f"is of type {kind}", f"a sink needs {needed} here"), None
    return checks.passes("options", _summary(options)), options


def usable(options: ConnectionOptions) -> ConnectionOptions:
    """Return options as a job gets them, the text of files in them.

    :raises ConfigurationError: a file cannot be read, or one of the two clients cannot use what is in it.
    """
    if isinstance(options, KafkaOptions):
        options = options.with_files_read()
        options.spark_source()
    return options


def _demand(conn_id: str, given: Given | None) -> ConnectionOptions:
    if given is None:
        raise ConfigurationError(f'connection "{conn_id}" was not given')
    if isinstance(given, SinkError):
        raise given
    return given.options() if isinstance(given, ConnectionFields) else given


def _kind(options: type[ConnectionOptions]) -> str:
    return KAFKA if issubclass(options, KafkaOptions) else POSTGRES


def _summary(options: ConnectionOptions) -> str:
    """Say what counts, and no secret."""
    if isinstance(options, KafkaOptions):
        protocol = options.options.get("security.protocol", "plaintext")
        user = f' as "{options.options["sasl.username"]}"' if "sasl.username" in options.options else ""
        unused = f"; not used by a sink: {', '.join(options.dropped)}" if options.dropped else ""
        return f"{options.bootstrap_servers}, {protocol}{user}{unused}"
    found = options.conninfo
    return f'{found["host"]}:{found["port"]}/{found["dbname"]} as "{found["user"]}"'
