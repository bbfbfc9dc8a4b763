"""Altering a connection to a real broker: what is found before anything is changed, and what is changed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from tests.airflow.api_server import account, serve
from tests.airflow_side import HOME, RunTask, airflow_db, connections, dag, run_task
from tests.live.sink_world import SinkWorld

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.local.broker import KafkaBroker

__all__ = ["airflow_db", "connections", "dag", "run_task"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
CONN_ID = "kafka_live"


@pytest.fixture(scope="module")
def airflow_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Airflow's REST API over the database of this process."""
    request.getfixturevalue("airflow_db")
    with serve(HOME) as url:
        yield url


@pytest.fixture
def api(airflow_url: str, connections: Callable[..., None]) -> Iterator[AirflowApi]:
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        yield api


@pytest.fixture
def world(broker: KafkaBroker) -> SinkWorld:
    """A sink that has run, and has written rows."""
    world = SinkWorld(broker, f"altered_{uuid.uuid4().hex[:8]}")
    world.create(world.source)
    world.start()
    world.write(1)
    return world


@pytest.fixture
def alter(
    api: AirflowApi, broker: KafkaBroker, dag: DAG, run_task: RunTask, world: SinkWorld
) -> Callable[..., Any]:
    """Alter a connection that the sink uses; the sink is not running."""
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    extra = {**broker.client_config(), "client.id": "old"}
    body = {"connection_id": CONN_ID, "conn_type": "kafka", "extra": json.dumps(extra)}
    api.call("POST", "connections", body)
    spec = json.loads(world.spec.to_json())
    for end in ("source", "target"):
        spec[end]["kafka"]["connection"] = CONN_ID
    SubmitSinkJobOperator(task_id="submit", sink=spec, dag=dag)

    def run(task_id: str, **arguments: Any) -> Any:
        task = AlterConnectionRestartOperator(task_id=task_id, conn_id=CONN_ID, dag=dag, **arguments)
        return run_task(task)

    return run


def test_new_options_are_checked_with_each_sink_before_they_are_committed(
    alter: Callable[..., Any], api: AirflowApi, world: SinkWorld
) -> None:
    nowhere = alter("nowhere", set={"bootstrap.servers": "127.0.0.1:1"})
    after_nowhere = extra_of(api)
    localhost = world.broker.bootstrap.replace("127.0.0.1", "localhost")
    somewhere = alter("somewhere", set={"bootstrap.servers": localhost}, drop=["client.id"])
    after_somewhere = extra_of(api)
    remember(api, world.name, other_cluster(world.witness()))
    no_worse = alter("no_worse", set={"client.id": "new"})
    store(api, {"bootstrap.servers": "127.0.0.1:1"})
    elsewhere = alter("elsewhere", set={"bootstrap.servers": localhost})

    assert nowhere.state in ("failed", "up_for_retry")
    assert after_nowhere["client.id"] == "old"
    assert somewhere.state == "success", somewhere.error
    assert after_somewhere == {"bootstrap.servers": localhost}
    assert no_worse.state == "success", no_worse.error
    assert elsewhere.state == "failed"
    assert f'sink "{world.name}" could not run on its new options' in str(elsewhere.error)
    assert "the sink ran on another cluster" in str(elsewhere.error)
    assert extra_of(api) == {"bootstrap.servers": "127.0.0.1:1"}
    assert api.find(f"connections/{CONN_ID}.before") is None


def extra_of(api: AirflowApi) -> dict[str, str]:
    row = api.find(f"connections/{CONN_ID}")
    assert row is not None
    return dict(json.loads(row["extra"]))


def store(api: AirflowApi, extra: dict[str, str]) -> None:
    """Edit the connection, as a person does."""
    body = {"connection_id": CONN_ID, "conn_type": "kafka", "extra": json.dumps(extra)}
    api.call("PATCH", f"connections/{CONN_ID}", body)


def remember(api: AirflowApi, sink: str, witness: Witness) -> None:
    """Write what Airflow remembers of a sink, as a task does."""
    (asset,) = api.all("assets", "assets", name_pattern=f"sink:{sink}")
    body = {"value": json.loads(witness.to_json())}
    api.call("PUT", f"assets/{asset['id']}/state-store/witness", body)


def other_cluster(witness: Witness) -> Witness:
    """Return the witness of a sink that ran on another cluster."""
    known = witness.identities
    ends = {
        name: replace(getattr(known, name), system="another cluster")
        for name in ("source", "data", "progress")
    }
    return replace(witness, identities=replace(known, **ends))
