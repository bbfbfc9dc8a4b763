"""Connections of type ``http`` that lead to a schema registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.clients.pem_files import PEM_FILES
from airflow_provider_sinks.clients.schema_registry import options as names
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class RegistryConnectionType(CheckedConnectionType):
    """Address and login stand in fields of their own; more addresses and certificates in the extra.

    A password without a login is a bearer token.
    """

    name = RegistryOptions.conn_type
    package = "apache-airflow-providers-http"
    alterable = AlterableOptions(
        columns=frozenset(COLUMNS),
        in_extra=names.ALLOWED,
        aliases={"user": "login", "token": "password"},
        secrets=names.SECRETS,
        harmless=names.HARMLESS,
        files=frozenset(PEM_FILES),
        others=frozenset(),
        refused=lambda name: names.REFUSED.get(name, ""),
        addresses=names.ADDRESSES,
        serves_others=True,
    )

    def read(self, fields: ConnectionFields) -> RegistryOptions:
        """Check all fields."""
        columns = {name: getattr(fields, name) for name in COLUMNS}
        return RegistryOptions.from_connection(fields.conn_id, **columns, extra=fields.stored_extra())

    def restore(self, conn_id: str, given: Mapping[str, str]) -> RegistryOptions:
        """Take the options as they are: they were checked when they were put together."""
        return RegistryOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge the way to the registry, the login, and the schemas of a sink's source."""
        from airflow_provider_sinks.connectors.schema_registry.checks import registry_checks

        if not isinstance(options, RegistryOptions):
            raise TypeError(options.conn_type)
        return (yield from registry_checks(validation, options))


SCHEMA_REGISTRY = RegistryConnectionType()
