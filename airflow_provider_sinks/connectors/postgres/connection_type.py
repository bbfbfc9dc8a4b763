"""Connections of type ``postgres``, of lookups and of a target: how they are read, altered and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.connectors.postgres import options as names
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions, Service

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class PostgresConnectionType(CheckedConnectionType):
    """Server, database and login stand in fields of their own, libpq's other parameters in the extra."""

    name = PostgresOptions.conn_type
    package = "airflow-provider-sinks[postgres]"
    alterable = AlterableOptions(
        columns=frozenset(COLUMNS),
        in_extra=names.ALLOWED,
        aliases={"user": "login", "dbname": "schema", "database": "schema"},
        secrets=names.SECRETS,
        harmless=names.HARMLESS | names.DROPPED,
        files=names.FILES,
        others=names.DROPPED,
        refused=lambda name: names.REFUSED.get(name, ""),
        addresses=names.ADDRESSES,
        services=(Service(names.ADDRESSES, (names.SECRETS,)),),
    )

    def read(self, fields: ConnectionFields) -> PostgresOptions:
        """Check all fields."""
        columns = {name: getattr(fields, name) for name in COLUMNS}
        return PostgresOptions.from_connection(fields.conn_id, **columns, extra=fields.stored_extra())

    def restore(self, conn_id: str, given: Mapping[str, str]) -> PostgresOptions:
        """Take the parameters as they are: they were checked when they were put together."""
        return PostgresOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge the way to the server, the login, and the tables of a sink's lookups."""
        from airflow_provider_sinks.connectors.postgres.connection_checks import postgres_checks

        if not isinstance(options, PostgresOptions):
            raise TypeError(options.conn_type)
        return (yield from postgres_checks(validation, options))


POSTGRES = PostgresConnectionType()
