"""Connections of type ``iceberg``, the catalogs of targets: how they are read, altered and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.connectors.iceberg import option_names as names
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class IcebergConnectionType(CheckedConnectionType):
    """Server and login of the catalog stand in fields of their own, all else in the extra."""

    name = IcebergOptions.conn_type
    package = "airflow-provider-sinks[iceberg]"
    alterable = AlterableOptions(
        columns=frozenset(COLUMNS),
        in_extra=names.ALLOWED,
        aliases={"user": "login", "dbname": "schema"},
        secrets=names.SECRETS,
        harmless=names.HARMLESS | names.DROPPED,
        files=names.FILES,
        others=names.DROPPED,
        refused=lambda name: names.REFUSED.get(name, ""),
        addresses=names.ADDRESSES,
        services=names.SERVICES,
    )

    def read(self, fields: ConnectionFields) -> IcebergOptions:
        """Check all fields."""
        columns = {name: getattr(fields, name) for name in COLUMNS}
        return IcebergOptions.from_connection(fields.conn_id, **columns, extra=fields.stored_extra())

    def restore(self, conn_id: str, given: Mapping[str, str]) -> IcebergOptions:
        """Take the parameters as they are: they were checked when they were put together."""
        return IcebergOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge the way to the catalog, and the login."""
        from airflow_provider_sinks.connectors.iceberg.connection_checks import catalog_checks

        if not isinstance(options, IcebergOptions):
            raise TypeError(options.conn_type)
        return (yield from catalog_checks(validation, options))


ICEBERG = IcebergConnectionType()
