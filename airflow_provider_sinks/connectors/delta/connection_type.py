"""Connections of type ``delta``, the storages of targets: how they are read, altered and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.connectors.delta import options as names
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class DeltaConnectionType(CheckedConnectionType):
    """All of it stands in the extra."""

    name = DeltaOptions.conn_type
    package = "airflow-provider-sinks[delta]"
    alterable = AlterableOptions(
        columns=frozenset(),
        in_extra=names.ALLOWED,
        aliases={},
        secrets=names.SECRETS,
        harmless=names.HARMLESS | names.DROPPED,
        files=frozenset(),
        others=names.DROPPED,
        refused=lambda name: names.REFUSED.get(name.lower(), ""),
        addresses=names.ADDRESSES,
        services=names.SERVICES,
    )

    def read(self, fields: ConnectionFields) -> DeltaOptions:
        """Check all fields."""
        columns = {name: getattr(fields, name) for name in COLUMNS}
        return DeltaOptions.from_connection(fields.conn_id, fields.stored_extra(), **columns)

    def restore(self, conn_id: str, given: Mapping[str, str]) -> DeltaOptions:
        """Take the parameters as they are: they were checked when they were put together."""
        return DeltaOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge the addresses that it names; whether the storage lets us in, its tables tell."""
        from airflow_provider_sinks.connectors.table_format.server_checks import further_servers

        if not isinstance(options, DeltaOptions):
            raise TypeError(options.conn_type)
        is_well = yield from further_servers(validation, options.conn_id, options.further_servers)
        return options if is_well else None


DELTA = DeltaConnectionType()
