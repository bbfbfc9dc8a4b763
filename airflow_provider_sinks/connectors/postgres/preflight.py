"""Whether the tables of a sink are there and may be written: asked by a validation, which changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.connectors.postgres.altering import Owner
from airflow_provider_sinks.connectors.postgres.creation import CreateTable
from airflow_provider_sinks.connectors.postgres.spec import PostgresSink
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.evolution import OPTION


def table_checks(conn_id: str, sink: PostgresSink, seen: dict[Role, ResourceFacts]) -> Iterator[Check]:
    """Judge the tables of a sink."""
    checks = Checks(conn_id, Family.DATABASE)
    for role, facts in seen.items():
        yield _table(checks, facts.title(role), facts, sink.creations()[role])


def owner_check(conn_id: str, table: str, owner: Owner | None) -> Check:
    """Judge whether a start may alter the table; it runs without that right until it has to.

    :param owner: of the table; nothing where the sink makes it.
    """
    checks, name = Checks(conn_id, Family.DATABASE), f"right to alter table {table}"
    if owner is None:
        return checks.passes(name, "the sink makes the table, and owns it")
    if owner.is_ours:
        return checks.passes(name, f"allowed, as {owner.name}")
    detail = f"{owner.table} belongs to {owner.name}: a start that has to alter the table will stop"
    return checks.unknown(name, detail, f"{owner.grant} or leave {OPTION} out.")


def _table(checks: Checks, name: str, facts: ResourceFacts, creation: CreateTable) -> Check:
    if facts.existence is Existence.UNKNOWN:
        return checks.fails(name, facts.reason, facts.grant, retryable=True)
    if facts.unfit is not None:
        return checks.fails(name, f"{facts.unfit.what}: {facts.unfit.why}", facts.unfit.repair)
    if facts.existence is Existence.PRESENT:
        return checks.passes(name, f"is there, oid {facts.id}")
    if creation.forbidden is None:
        return checks.passes(name, "is not there; the sink makes it")
    return checks.fails(name, f"does not exist, and {creation.forbidden.why}", creation.forbidden.repair)
