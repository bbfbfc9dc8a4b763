"""Validates connections, stored or in memory: goes through all checks, within a time, and changes nothing.

::

    report = validate({"kafka_prod": fields}, sink)
    print(report.table())

A failed step does not end the others: all problems are known at once. What a step before makes impossible is
skipped and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from airflow_provider_sinks.clients.time_limit import Deadline, within
from airflow_provider_sinks.connectors.kafka.preflight.run import Run, kafka_checks
from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.checks.check import Check, Checks, Family, Outcome, Report
from airflow_provider_sinks.core.checks.database import DatabaseFacts, database_checks
from airflow_provider_sinks.core.checks.fields import ConnectionFields, Given, options_check
from airflow_provider_sinks.core.checks.network import POSTGRES_WAY, Layer, network_checks
from airflow_provider_sinks.core.connection.resolved import ConnectionOptions, KafkaOptions, PostgresOptions
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.parts import PostgresLookup
from airflow_provider_sinks.core.spec.sink import SinkSpec

VALIDATION_SECONDS = 60.0
"""How long a whole validation may take, unless told otherwise."""
_TABLE_SECONDS = 20.0


def validate(
    connections: Mapping[str, Given],
    sink: SinkSpec | None = None,
    *,
    witness: Witness | None = None,
    seconds: float = VALIDATION_SECONDS,
    with_types: bool = False,
) -> Report:
    """Validate connections by themselves, or a sink with all its connections. Never raises for what it finds.

    Called by a task before a sink is started, and for each dependent sink before a connection is altered;
    safe in several threads at once. Nothing is created: no topic, record, group, transactional id or table.

    :param connections: by connection id; with a sink, each that it names.
    :param sink: whose topics, tables and rights are judged too.
    :param witness: what Airflow remembers of the sink; its clusters and topics must be the same.
    :param seconds: how long all of it may take.
    :param with_types: whether the report shall know the types of the sink's lookups.
    """
    run = Run(sink, witness, Deadline(seconds), with_types)
    checks: list[Check] = []
    for conn_id, wanted in _wanted(connections, sink).items():
        check, options = options_check(conn_id, connections.get(conn_id), wanted)
        checks.append(check)
        if options is not None and run.deadline.is_over:
            checks.append(_too_late(conn_id))
        elif isinstance(options, KafkaOptions):
            checks += _whole(conn_id, kafka_checks(run, options))
        elif isinstance(options, PostgresOptions):
            checks += _whole(conn_id, _postgres(run, options))
    if sink is not None and sink.target_connection is None:
        checks += _whole(f"target {sink.target_kind}", _unconnected(run, sink))
    title = f'sink "{sink.name}"' if sink else " and ".join(f'connection "{name}"' for name in connections)
    return Report(title, tuple(checks), run.clusters, run.lookups)


def _wanted(
    connections: Mapping[str, Given], sink: SinkSpec | None
) -> dict[str, type[ConnectionOptions] | None]:
    """Return the connections to judge, the source's first, and the type that each must have."""
    if sink is None:
        return dict.fromkeys(connections)
    types = {"kafka": KafkaOptions, "postgres": PostgresOptions}
    ends: dict[str, type[ConnectionOptions] | None] = {sink.source.kafka.connection: KafkaOptions}
    if sink.target_connection and sink.connection_type:
        ends[sink.target_connection] = types[sink.connection_type]
    others = (name for name in sink.connections if name not in ends)
    return {**ends, **dict.fromkeys(others, PostgresOptions)}


def _too_late(conn_id: str) -> Check:
    hint = "Give it more time, or see which connection before it took so long."
    return Checks(conn_id, Family.NETWORK).fails(
        "further checks", "not made: the time for all checks is over", hint, retryable=True
    )


def _whole(conn_id: str, checks: Iterator[Check]) -> Iterator[Check]:
    """Make checks; what ends them is a line of the report, not its end."""
    try:
        yield from checks
    except SinkError as error:
        yield Checks(conn_id, Family.CLUSTER).judged_by("further checks", error)
    except Exception as error:  # noqa: BLE001  nobody foresaw it: said, with its type only, as it may hold anything
        detail = f"an unforeseen {type(error).__name__}"
        yield Checks(conn_id, Family.CLUSTER).fails("further checks", detail, retryable=True)


def _postgres(run: Run, options: PostgresOptions) -> Iterator[Check]:
    from airflow_provider_sinks.clients import postgres_survey

    address, lookups = "", _lookups(run.sink, options.conn_id)
    if not postgres_survey.is_local(options):
        facts = postgres_survey.reach(options, run.deadline)
        tls = facts.encrypted or facts.stopped_at(Layer.TLS)  # sslmode=prefer goes on without it
        yield from network_checks(options.conn_id, [facts], POSTGRES_WAY[:-1], tls=tls)
        if facts.stopped is not None:
            yield Checks(options.conn_id, Family.DATABASE).skips("database", "the server was not reached")
            return
        address = facts.addresses[0]
    tables = [lookup.table for lookup in lookups.values()]
    network = Checks(options.conn_id, Family.NETWORK)
    try:
        found: DatabaseFacts = postgres_survey.survey(options, address, tables, run.deadline)
    except SinkError as error:
        yield network.judged_by("authentication", error)
        yield Checks(options.conn_id, Family.DATABASE).skips("database", "the server did not let us in")
        return
    yield network.passes("authentication", f'accepted as "{found.user}"', found.seconds)
    checks = list(database_checks(options.conn_id, found, list(lookups.values())))
    yield from checks
    yield from _target(run, options, address)
    if run.with_types and not any(check.outcome is Outcome.FAIL for check in checks):
        with suppress(SinkError):  # whoever wants to know them says that they are not known
            run.lookups |= postgres_survey.types(options, address, lookups, run.deadline)


def _target(run: Run, options: PostgresOptions, address: str) -> Iterator[Check]:
    """Judge the tables that a sink writes on this connection, at the address that was judged."""
    sink = run.sink
    if sink is None or sink.target_connection != options.conn_id:
        return
    pinned = {**options.parameters, **({"hostaddr": address} if address else {})}
    there = replace(options, parameters=pinned)
    yield from within(run.deadline.left(_TABLE_SECONDS), lambda: list(kind(sink).target_checks(sink, there)))


def _unconnected(run: Run, sink: SinkSpec) -> Iterator[Check]:
    """Judge a target that needs no connection, as far as it can be seen from here."""
    yield from within(run.deadline.left(_TABLE_SECONDS), lambda: list(kind(sink).target_checks(sink, None)))


def _lookups(sink: SinkSpec | None, conn_id: str) -> dict[str, PostgresLookup]:
    found = {name: lookup.postgres for name, lookup in sink.lookups.items()} if sink else {}
    return {name: lookup for name, lookup in found.items() if lookup.connection == conn_id}


__all__ = ["VALIDATION_SECONDS", "ConnectionFields", "Given", "Report", "validate"]
