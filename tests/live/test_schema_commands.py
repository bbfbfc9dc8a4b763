"""``airflow sinks plan`` says which schemas a start would register, and registers nothing."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local import spark
from tests.airflow.desk import Desk
from tests.live.registered import Registered
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import Sink

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]


_WHY = "field id is written as long and read as null or string (for readers of the new schema)"


@pytest.fixture
def sink(registered: Registered, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Sink:
    """A sink of Avro values that has written one, and whose query is another one since."""
    for name, value in spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    stage = registered.stage
    source = stage.source("orders", {0: [("k", '{"id": 1, "what": "tea"}')]})
    to = {"format": "avro", "registry": "registry", "topic": f"{source}-out", "record": "shop.Order"}
    made = stage.sink("schemas", source, from_={"schema": "id bigint, what string"}, to=to)
    made.run()
    registered.level(_subject(made), "BACKWARD")
    made.spec = {**made.spec, "select": request.param}
    return made


def _subject(sink: Sink) -> str:
    return f"{sink.out}-value"


@pytest.mark.parametrize("sink", [["id", "what"]], indirect=True)
def test_a_schema_that_is_registered_is_named_by_its_id(desk: Desk, sink: Sink) -> None:
    seen = desk.run("plan", desk.sink)

    assert seen.code == 0, seen.err
    assert f'schema of the value: registered under subject "{_subject(sink)}" with id ' in seen.out


@pytest.mark.parametrize("sink", [["id", "what", "length(what) AS size"]], indirect=True)
def test_a_compatible_schema_is_shown_as_it_would_be_registered(
    desk: Desk, sink: Sink, registered: Registered
) -> None:
    shown, data = desk.run("plan", desk.sink), desk.run("plan", desk.sink, "-o", "json").data

    assert shown.code == 0, shown.err
    assert f'compatible with version 1 of subject "{_subject(sink)}" (BACKWARD)' in shown.out
    (schema,) = data["schemas"]
    assert (schema["part"], schema["state"], schema["id"]) == ("value", "compatible", None)
    assert [field["name"] for field in json.loads(schema["text"])["fields"]] == ["id", "what", "size"]
    assert registered.versions(_subject(sink)) == 1
    sink.run()
    assert registered.versions(_subject(sink)) == 2


@pytest.mark.parametrize("sink", [["CAST(id AS string) AS id", "what"]], indirect=True)
def test_an_incompatible_schema_is_refused_by_field_with_the_code_of_the_start(
    desk: Desk, sink: Sink, registered: Registered
) -> None:
    shown, data = desk.run("plan", desk.sink), desk.run("plan", desk.sink, "-o", "json").data

    assert shown.code == ExitCode.CONFIGURATION
    told = f'incompatible with version 1 of subject "{_subject(sink)}" (BACKWARD) because {_WHY}'
    assert f"refused: schema of the value: {told}" in shown.out
    assert data["schemas"][0]["reasons"] == [_WHY]
    assert registered.versions(_subject(sink)) == 1
    sink.fail(ExitCode.CONFIGURATION)
