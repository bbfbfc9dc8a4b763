"""What a start would say of a sink's tables in Postgres, and what was seen of them."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import ResourceFacts
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.testing.played_start import SINK, SOURCE
from tests.contract.postgres_harness import PostgresHarness


def options_of(harness: PostgresHarness, login: tuple[str, str]) -> PostgresOptions:
    as_user = {**harness._options.parameters, "user": login[0], "password": login[1]}
    return replace(harness._options, parameters=as_user)


def verdict_of(harness: PostgresHarness, login: tuple[str, str] | None = None) -> Verdict:
    progress, data, dead = harness.creations()
    options = harness._options if login is None else options_of(harness, login)
    request = StartRequest(SINK, "owner", SOURCE.name, data=data, progress=progress, dead_letter=dead)
    connector = PostgresConnector(harness.sink(), options)
    try:
        return decide(connector.observe(SOURCE), request)
    finally:
        connector.close()


def run(harness: PostgresHarness, statement: str) -> None:
    names = {"schema": harness.schema, "sink": SINK, "progress": harness.sink().target.progress_table}
    harness.direct.execute(statement.format(**names).encode())


def dead_letters_of(harness: PostgresHarness) -> ResourceFacts:
    connector = harness.connector()
    try:
        seen = connector.observe(SOURCE).dead_letter
    finally:
        connector.close()
    assert seen is not None
    return seen
