"""The checks of one connection to a catalog: the way to it, and the login where that can be told apart."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import urlsplit

from airflow_provider_sinks.clients.reach import Trail, connect, follow
from airflow_provider_sinks.connectors.connection_checks import ConnectionChecks, Validation
from airflow_provider_sinks.connectors.iceberg.option_names import CatalogKind
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.postgres import survey
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.table_format.server_checks import further_servers
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.network import Layer, Way, network_checks
from airflow_provider_sinks.core.errors import SinkError

_WAY = Way((Layer.NAME, Layer.TCP))


def catalog_checks(validation: Validation, options: IcebergOptions) -> ConnectionChecks:
    """Judge one connection.

    :return: the options, where the catalog was reached.
    :raises SinkError: it could not be asked any further.
    """
    if not (yield from further_servers(validation, options.conn_id, options.further_servers)):
        yield Checks(options.conn_id, Family.DATABASE).skips("catalog", "nobody was asked")
        return None
    if options.kind is CatalogKind.JDBC:
        is_well = yield from _database(validation, options)
    else:
        is_well = yield from _server(validation, options)
    return options if is_well else None


def _database(validation: Validation, options: IcebergOptions) -> Generator[Check, None, bool]:
    database = PostgresOptions(options.conn_id, options.conninfo)
    facts = survey.reach(database, validation.deadline)
    tls = facts.encrypted or facts.stopped_at(Layer.TLS)  # sslmode=prefer goes on without it
    yield from network_checks(options.conn_id, [facts], survey.WAY, tls=tls)
    if facts.stopped is not None:
        yield Checks(options.conn_id, Family.DATABASE).skips("catalog", "the server was not reached")
        return False
    network = Checks(options.conn_id, Family.NETWORK)
    try:
        found = survey.survey(database, facts.addresses[0], [], validation.deadline)
    except SinkError as error:
        yield network.judged_by("authentication", error)
        yield Checks(options.conn_id, Family.DATABASE).skips("catalog", "the server did not let us in")
        return False
    yield network.passes("authentication", f'accepted as "{found.user}"', found.seconds)
    return True


def _server(validation: Validation, options: IcebergOptions) -> Generator[Check, None, bool]:
    if options.kind is CatalogKind.REST:
        address = urlsplit(options.parameters["host"])
        host = address.hostname or ""
        port = address.port or (443 if address.scheme == "https" else 80)
    else:
        host, port = options.parameters["host"], int(options.parameters["port"])

    def go(trail: Trail) -> None:
        connect(host, port, trail).close()

    facts = follow(f"{host}:{port}", validation.deadline, go)
    yield from network_checks(options.conn_id, [facts], _WAY, tls=False)
    return facts.stopped is None
