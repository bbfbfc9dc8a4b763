"""The checks of one Postgres connection: the way to it, the login, and the tables of a sink's lookups."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from airflow_provider_sinks.connectors.connection_checks import ConnectionChecks, Validation
from airflow_provider_sinks.connectors.postgres import survey
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.checks.check import Checks, Family, Outcome
from airflow_provider_sinks.core.checks.database import DatabaseFacts, database_checks
from airflow_provider_sinks.core.checks.network import Layer, network_checks
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.spec.parts import PostgresLookup


def postgres_checks(validation: Validation, options: PostgresOptions) -> ConnectionChecks:
    """Judge one connection, at the one address that it is reached by from then on.

    :return: the options with that address.
    :raises SinkError: it could not be asked any further.
    """
    address, lookups = "", _lookups(validation, options.conn_id)
    if not survey.is_local(options):
        facts = survey.reach(options, validation.deadline)
        tls = facts.encrypted or facts.stopped_at(Layer.TLS)  # sslmode=prefer goes on without it
        yield from network_checks(options.conn_id, [facts], survey.WAY, tls=tls)
        if facts.stopped is not None:
            yield Checks(options.conn_id, Family.DATABASE).skips("database", "the server was not reached")
            return None
        address = facts.addresses[0]
    tables = [lookup.table for lookup in lookups.values()]
    network = Checks(options.conn_id, Family.NETWORK)
    try:
        found: DatabaseFacts = survey.survey(options, address, tables, validation.deadline)
    except SinkError as error:
        yield network.judged_by("authentication", error)
        yield Checks(options.conn_id, Family.DATABASE).skips("database", "the server did not let us in")
        return None
    yield network.passes("authentication", f'accepted as "{found.user}"', found.seconds)
    checks = list(database_checks(options.conn_id, found, list(lookups.values())))
    yield from checks
    if validation.with_types and not any(check.outcome is Outcome.FAIL for check in checks):
        with suppress(SinkError):  # whoever wants to know them says that they are not known
            validation.lookups |= survey.types(options, address, lookups, validation.deadline)
    pinned = {"hostaddr": address} if address else {}
    return replace(options, parameters={**options.parameters, **pinned})


def _lookups(validation: Validation, conn_id: str) -> dict[str, PostgresLookup]:
    found = (
        {name: lookup.postgres for name, lookup in validation.sink.lookups.items()} if validation.sink else {}
    )
    return {name: lookup for name, lookup in found.items() if lookup.connection == conn_id}
