"""Whether the tables of a sink are there and may be written: asked by a validation, which changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.connectors.postgres.creation import CreateTable
from airflow_provider_sinks.connectors.postgres.spec import PostgresSink
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role


def table_checks(conn_id: str, sink: PostgresSink, seen: dict[Role, ResourceFacts]) -> Iterator[Check]:
    """Judge the tables of a sink."""
    checks = Checks(conn_id, Family.DATABASE)
    for role, facts in seen.items():
        yield _table(checks, facts.title(role), facts, sink.creations()[role])


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
