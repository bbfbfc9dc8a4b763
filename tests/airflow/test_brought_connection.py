"""A target that another package brings, with a type of connection that the same package brings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.connectors.registry import connection_types
from airflow_provider_sinks.core.alter.changes import SetOption
from airflow_provider_sinks.core.alter.fold import alter
from airflow_provider_sinks.core.checks.check import Report
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.follow import Reading
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.fakes import KAFKA
from tests.brought_shelf import ShelfOptions
from tests.installed_connector import register

if TYPE_CHECKING:
    from tests.airflow.desk import Define

STORED = ConnectionFields("attic", "shelf", host="upstairs", password="word")


@pytest.fixture(autouse=True)
def _found(tmp_path: Path) -> Iterator[None]:
    with register(tmp_path, "shelf = tests.brought_shelf:KIND").found():
        yield


def sink() -> SinkSpec:
    source = {"kafka": {"connection": "kafka_test", "topic": "orders", "schema": "id long"}}
    return SinkSpec.parse({"name": "o", "source": source, "target": {"shelf": {"connection": "attic"}}})


def validated(**changes: Any) -> Report:
    return validate({"attic": replace(STORED, **changes)})


def lines(report: Report) -> list[tuple[str, str]]:
    return [(check.name, check.outcome) for check in report.checks]


def test_the_options_reach_the_job_and_show_no_secret(connections: Define) -> None:
    from airflow_provider_sinks.hooks.connections import resolve

    connections(kafka_test=KAFKA, attic={"conn_type": "shelf", "host": "upstairs", "password": "word"})

    resolved = resolve(sink())

    back = ResolvedConnections.from_json(resolved.to_json())
    assert connection_types(sink()) == {"kafka_test": "kafka", "attic": "shelf"}
    assert back.get("attic", ShelfOptions).given == {"host": "upstairs", "password": "word"}
    assert "word" not in repr(resolved)


def test_a_running_sink_follows_it_and_its_password_makes_no_other_digest() -> None:
    one, two = (Reading.of("attic", replace(STORED, password=word).options()) for word in ("one", "two"))
    moved = Reading.of("attic", replace(STORED, password="one", host="cellar").options())

    assert one.visible == two.visible != moved.visible
    assert len({one.fingerprint, two.fingerprint, moved.fingerprint}) == 3


def test_all_that_is_wrong_with_one_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        replace(STORED, host=None, password=None).options()

    assert "host: is missing" in refused.value.detail
    assert "password: is missing" in refused.value.detail


def test_one_of_another_type_is_told_by_the_type_that_is_needed(connections: Define) -> None:
    from airflow_provider_sinks.hooks.connections import resolve

    connections(kafka_test=KAFKA, attic={"conn_type": "generic", "host": "upstairs"})

    with pytest.raises(ConfigurationError) as refused:
        resolve(sink())

    assert "shelf is needed here; Airflow makes a type generic" in str(refused.value)
    assert 'pip install "airflow-providers-shelf"' in str(refused.value)


def test_it_is_altered_and_its_secret_is_told_to_nobody_new() -> None:
    with pytest.raises(ConfigurationError, match="password: must be given anew: host would change"):
        alter(STORED, [SetOption("host", "cellar")])

    assert alter(replace(STORED, password="old"), [SetOption("host", "upstairs")]).host == "upstairs"


def test_its_own_checks_are_made_and_the_target_is_asked_only_behind_them() -> None:
    assert lines(validated()) == [("options", "pass"), ("reach", "pass")]
    assert lines(validated(host="nowhere")) == [("options", "pass"), ("reach", "fail")]
    for host, asked in (("upstairs", True), ("nowhere", False)):
        report = validate({"attic": replace(STORED, host=host), "kafka_test": away()}, sink())
        assert (("place top", "pass") in lines(report)) is asked


def away() -> ConfigurationError:
    return ConfigurationError("not asked here")
