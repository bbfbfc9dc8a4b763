"""Validates connections, stored or in memory: goes through all checks, within a time, and changes nothing.

::

    report = validate({"kafka_prod": fields}, sink)
    print(report.table())

A failed step does not end the others: all problems are known at once. What a step before makes impossible is
skipped and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_provider_sinks.clients.time_limit import Deadline, within
from airflow_provider_sinks.connectors.connection_checks import Validation
from airflow_provider_sinks.connectors.registry import checked_type, connect, connection_types, kind
from airflow_provider_sinks.core.checks.check import Check, Checks, Family, Report
from airflow_provider_sinks.core.checks.identities import announced
from airflow_provider_sinks.core.checks.options import options_check
from airflow_provider_sinks.core.connection.fields import ConnectionFields, Given
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.witness import Witness
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
    start_decides: bool = False,
) -> Report:
    """Validate connections by themselves, or a sink with all its connections. Never raises for what it finds.

    Called by a task before a sink is started, and for each dependent sink before a connection is altered;
    safe in several threads at once. Nothing is created: no topic, record, group, transactional id or table.

    :param connections: by connection id; with a sink, each that it names.
    :param sink: whose topics, tables and rights are judged too.
    :param witness: what Airflow remembers of the sink; its topics and tables must be the same.
    :param seconds: how long all of it may take.
    :param with_types: whether the report shall know the types of the sink's lookups.
    :param start_decides: a start comes next, and offers ways on: other topics or tables are told, and fail
        nothing.
    """
    validation = Validation(sink, witness, Deadline(seconds), with_types, start_decides)
    checks: list[Check] = []
    for conn_id, wanted in _wanted(connections, sink).items():
        check, options = options_check(conn_id, connections.get(conn_id), wanted)
        checks.append(check)
        if options is not None and validation.deadline.is_over:
            checks.append(_too_late(conn_id))
        elif options is not None:
            checks += _whole(conn_id, _connected(validation, options))
    if sink is not None and sink.target_connection is None:
        checks += _whole(f"target {sink.target_kind}", _target(validation, sink, None))
    title = f'sink "{sink.name}"' if sink else " and ".join(f'connection "{name}"' for name in connections)
    return Report(title, tuple(checks), validation.clusters, validation.lookups, validation.source_schemas)


def _wanted(connections: Mapping[str, Given], sink: SinkSpec | None) -> Mapping[str, str | None]:
    """Return the connections to judge, the source's first, and the type that each must have."""
    return dict.fromkeys(connections) if sink is None else connection_types(sink)


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


def _connected(validation: Validation, options: ConnectionOptions) -> Iterator[Check]:
    """Judge a connection, and then what a sink writes on it."""
    reached = yield from checked_type(options.conn_type).checks(validation, options)
    if (
        reached is not None
        and validation.sink is not None
        and validation.sink.target_connection == options.conn_id
    ):
        yield from _target(validation, validation.sink, reached)


def _target(validation: Validation, sink: SinkSpec, options: ConnectionOptions | None) -> Iterator[Check]:
    """Judge outputs and progress place, as far as they can be seen from here."""
    yield from within(
        validation.deadline.left(_TABLE_SECONDS), lambda: list(kind(sink).target_checks(sink, options))
    )
    yield from within(
        validation.deadline.left(_TABLE_SECONDS), lambda: list(_identities(validation, sink, options))
    )


def _identities(validation: Validation, sink: SinkSpec, options: ConnectionOptions | None) -> Iterator[Check]:
    """Compare outputs and progress place with the witness, unless checks of a connection have done it."""
    subject = sink.target_connection or f"target {sink.target_kind}"
    compared = validation.identity_checks(Checks(subject, Family.DATABASE))
    if compared is None or announced(compared.witness).keys() <= {Role.SOURCE, *validation.compared}:
        return
    given = ResolvedConnections({options.conn_id: options} if options is not None else {})
    connector = connect(sink, given)
    try:
        seen = connector.identify()
        yield from compared.of(
            {role: facts for role, facts in seen.items() if role not in validation.compared}
        )
    finally:
        connector.close()


__all__ = ["VALIDATION_SECONDS", "ConnectionFields", "Given", "Report", "validate"]
