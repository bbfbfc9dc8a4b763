"""Connections of type ``redis``: how they are read, what may be altered, how they are judged."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.core.checks.check import Checks, Family
from airflow_provider_sinks.core.connection.alterable import AlterableOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import SinkError
from sinks_connector_redis import options as names
from sinks_connector_redis.options import RedisOptions


class RedisConnectionType(CheckedConnectionType):
    """Server and login stand in fields of their own, the number of the database in the extra."""

    name = RedisOptions.conn_type
    package = "apache-airflow-providers-redis"
    alterable = AlterableOptions(
        columns=frozenset({"host", "port", "login", "password"}),
        in_extra=names.IN_EXTRA,
        aliases={"user": "login", "username": "login"},
        secrets=names.SECRETS,
        harmless=frozenset({"db"}),
        files=frozenset(),
        others=frozenset(),
        refused=lambda name: names.REFUSED.get(name, ""),
    )

    def read(self, fields: ConnectionFields) -> RedisOptions:
        """Check all fields."""
        return RedisOptions.of(fields)

    def restore(self, conn_id: str, given: Mapping[str, str]) -> RedisOptions:
        """Take them as they are: they were checked when they were read."""
        return RedisOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge whether the server answers, is new enough, and keeps what it acknowledged."""
        from sinks_connector_redis import server

        del validation
        if not isinstance(options, RedisOptions):
            raise TypeError(options.conn_type)
        network = Checks(options.conn_id, Family.NETWORK)
        try:
            with server.client(options) as client:
                version, doubt = server.version(client, options), server.durability_doubt(client, options)
        except SinkError as error:
            yield network.judged_by("server", error)
            return None
        yield network.passes("server", f"Redis {version} answers at {options.summary}")
        database = Checks(options.conn_id, Family.DATABASE)
        if version < server.VERSION_MIN:
            yield database.fails("version", f"{version} is too old", f"{server.VERSION_MIN} or newer")
            return None
        if doubt:
            yield database.unknown("durability", doubt, server.DURABILITY_HINT)
        else:
            yield database.passes("durability", "what it acknowledges is on its disk")
        return options


REDIS = RedisConnectionType()
