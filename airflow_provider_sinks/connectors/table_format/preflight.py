"""Whether the tables of a sink are there and may be written: asked by a validation, which changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_provider_sinks.connectors.table_format.creation import CreateTable
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.spec.sink import SinkSpec

_DAY_SECONDS = 86_400
FILES_A_DAY_MAX = 10_000
"""So many data files a day of one writer are worth a word: a reader opens each of them."""


def table_checks(
    service: str, sink: SinkSpec, seen: Mapping[Role, ResourceFacts], maintenance: str
) -> Iterator[Check]:
    """Judge the tables of a sink, and how many files it makes.

    :param service: who was asked: a connection, or a place.
    :param maintenance: what makes large files of small ones.
    """
    checks = Checks(service, Family.DATABASE)
    for role, facts in seen.items():
        creation = sink.creations()[role]
        if isinstance(creation, CreateTable):
            yield _table(checks, facts.title(role), facts, creation)
    if sink.trigger.every is not None:
        yield _files(checks, sink.trigger.every.total_seconds(), sink.writer_mode.value, maintenance)


def _files(checks: Checks, every_seconds: float, writers: str, maintenance: str) -> Check:
    name, each = "data files", "source partition" if writers != "single" else "epoch"
    count = int(_DAY_SECONDS / every_seconds)
    detail = f"up to {count:,} files a day for each {each}, with an epoch every {every_seconds:g} s"
    if count <= FILES_A_DAY_MAX:
        return checks.passes(name, detail)
    hint = f"Raise trigger.every, such as to 1m, or have {maintenance} run often."
    return checks.unknown(name, detail, hint)


def _table(checks: Checks, name: str, facts: ResourceFacts, creation: CreateTable) -> Check:
    if facts.existence is Existence.UNKNOWN:
        return checks.fails(name, facts.reason, facts.grant, retryable=True)
    if facts.unfit is not None:
        return checks.fails(name, f"{facts.unfit.what}: {facts.unfit.why}", facts.unfit.repair)
    if facts.existence is Existence.PRESENT:
        return checks.passes(name, f"is there, id {facts.id}")
    if creation.forbidden is None:
        return checks.passes(name, "is not there; the sink makes it")
    return checks.fails(name, f"does not exist, and {creation.forbidden.why}", creation.forbidden.repair)
