"""Validation asks a real Spark about the SQL of sinks: one JVM for all of them, with a real lookup table."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.core.checks.check import Check, Family, Outcome
from airflow_provider_sinks.core.checks.sql import NAME
from airflow_provider_sinks.core.query.questions import AskSpark
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.postgres import Postgres
from tests.airflow.fakes import KAFKA, SPARK
from tests.airflow_side import airflow_db, connections

__all__ = ["airflow_db", "connections"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
AUTO, ALWAYS = AskSpark.AUTO, AskSpark.ALWAYS
CLICKS = {"connection": "kafka_test", "topic": "in", "format": "json", "schema": "url string, n int, at date"}
USERS = "SELECT c.url, u.since FROM source c JOIN users u ON u.url = c.url WHERE "
COUNTED = "SELECT url, sum(array(n)) AS n FROM source GROUP BY url"
SINKS: dict[str, dict[str, Any]] = {
    "fine": {"select": ["url", "n + 1 AS more"], "where": "at > DATE '2020-01-01'"},
    "types": {
        "select": ["url", "map(1, n) + 1 AS more", "more + 1 AS most", "n.x AS part"],
        "where": "n + 1 > DATE '2020-01-01'",
    },
    "lookup": {"query": f"{USERS} c.at >= u.since", "lookups": ["users"]},
    "lookup_types": {"query": f"{USERS} c.n >= u.since", "lookups": ["users"]},
    "lookup_column": {"query": f"{USERS} u.sinc IS NULL", "lookups": ["users"]},
    "lookup_away": {"query": USERS + "true", "lookups": ["users"], "table": "public.nowhere"},
    "stateful": {"query": COUNTED, "key": "url", "output_mode": "update"},
}
WRONG = {
    "types": {
        f"{NAME}: select[1]": '("MAP<INT, INT>" and "INT")',
        f"{NAME}: select[3]": 'Can\'t extract a value from "n"',
        f"{NAME}: where": '("INT" and "DATE")',
    },
    "lookup_types": {f"{NAME}: query": '("INT" and "DATE")'},
    "lookup_column": {f"{NAME}: query": "`u`.`sinc` cannot be resolved"},
    "stateful": {f"{NAME}: query": 'however "array(n)" has the type "ARRAY<INT>"'},
}


def sink(name: str, users: str) -> SinkSpec:
    parts = dict(SINKS[name])
    key, table = parts.pop("key", []), parts.pop("table", users)
    lookups = dict.fromkeys(parts.pop("lookups", []), f"pg/{table}")
    target = {"connection": "kafka_test", "topic": "out", "format": "json", **({"key": key} if key else {})}
    return SinkSpec.parse(
        {"name": name, "source": {"kafka": CLICKS}, "target": {"kafka": target}, "lookups": lookups, **parts}
    )


@pytest.fixture
def users(postgres: Postgres) -> Iterator[str]:
    """A table of which only the type of one column does not fit every query."""
    schema = f"v{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.users (url text, since date)")
    yield f"{schema}.users"
    with postgres.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def worker(
    postgres: Postgres, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """A worker with Spark in its PATH, and connections; the broker is away."""
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    for name, value in spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    fields = {"host": postgres.host, "port": postgres.port, "login": postgres.user}
    database = {"conn_type": "postgres", "schema": postgres.dbname, "password": postgres.password, **fields}
    connections(spark_default=SPARK, kafka_test=KAFKA, pg=database)
    return monkeypatch


def of_sql(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.family is Family.SQL}


@pytest.mark.usefixtures("worker")
def test_spark_judges_the_sql_of_all_sinks_as_their_jobs_would(users: str) -> None:
    from airflow_provider_sinks.operators.validate.sink_report import sink_reports

    specs = [sink(name, users) for name in SINKS]
    reports = sink_reports(specs, "spark_default", timeout_seconds=300)

    found = {spec.name: of_sql(report.checks) for spec, report in zip(specs, reports, strict=True)}
    for name in ("fine", "lookup"):
        assert found[name][NAME].outcome is Outcome.PASS, found[name]
    for name, problems in WRONG.items():
        assert_fails(found[name], problems)
    away = found["lookup_away"][NAME]
    assert (away.outcome, "what lookup users holds is not known" in away.detail) == (Outcome.UNKNOWN, True)


def assert_fails(checks: Mapping[str, Check], problems: Mapping[str, str]) -> None:
    """Each problem is a check of its own, in words that the user has written."""
    assert list(checks) == list(problems)
    for name, check in checks.items():
        assert check.outcome is Outcome.FAIL
        assert problems[name] in check.detail
        assert "__sinks_" not in check.detail


def test_a_worker_without_java_says_that_types_were_not_checked(
    worker: pytest.MonkeyPatch, tmp_path: Path, users: str
) -> None:
    from airflow_provider_sinks.operators.validate.sink_report import sink_report

    worker.setenv("JAVA_HOME", str(tmp_path))
    wanted, needed = (sink_report(sink("fine", users), "spark_default", ask=ask) for ask in (AUTO, ALWAYS))

    unknown, failed = of_sql(wanted.checks)[NAME], of_sql(needed.checks)[NAME]
    assert unknown.outcome is Outcome.UNKNOWN
    assert "no Java" in unknown.detail
    assert "the types of the SQL are not checked; the job asks Spark" in unknown.detail
    assert (failed.outcome, "no Java" in failed.detail) == (Outcome.FAIL, True)


@pytest.mark.usefixtures("worker")
def test_nobody_is_asked_where_the_author_says_so(users: str) -> None:
    from airflow_provider_sinks.operators.validate.sink_report import sink_report

    begun = time.monotonic()
    report = sink_report(sink("types", users), "spark_default", ask=AskSpark.NEVER)

    assert of_sql(report.checks)[NAME].outcome is Outcome.SKIPPED
    assert report.lookups == {}
    assert time.monotonic() - begun < 30
