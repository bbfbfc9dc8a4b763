"""The storage of tables that sinks write is altered while they run: another server, and other keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.object_store import Keys, ObjectStore
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults.driver import QUICK_START
from tests.live.alter_story import AlterDag
from tests.live.lake_sink import NAMES, LakeSink


@dataclass(frozen=True)
class World:
    """A sink, what alters its connection, and two servers of one storage, each with keys of its own."""

    airflow: AirflowStack
    sink: LakeSink
    old: ObjectStore
    new: ObjectStore
    alter: AlterDag

    def statement(self, store: ObjectStore, keys: Keys, variable: str) -> str:
        """Return what leads the connection to a server; who alters one part of it gives all of its secrets.

        :param variable: has the secret, and is made.
        """
        self.airflow.call("POST", "variables", {"key": variable, "value": keys.secret})
        address, key, secret = NAMES[self.sink.kind]
        given = f"{address} = '{store.url}', {key} = '{keys.id}', {secret} = SECRET {variable}"
        if self.sink.kind == "iceberg":
            catalog = {"key": f"{variable}_catalog", "value": self.sink.server.password}
            self.airflow.call("POST", "variables", catalog)
            given += f", password = SECRET {catalog['key']}"
        return f"ALTER CONNECTION {self.sink.table_connection} SET ({given})"


@pytest.fixture(scope="module", params=list(NAMES))
def world(
    request: pytest.FixtureRequest,
    airflow: AirflowStack,
    broker: KafkaBroker,
    postgres: Postgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """A sink of each kind, running by the old server; nothing is fed but what tests feed."""
    kind: str = request.param
    folder: Path = tmp_path_factory.mktemp(f"stores of {kind}")
    spark_conn_id = f"spark_of_{kind}"
    arguments = {
        "spark_conn_id": spark_conn_id,
        "jars": ",".join(map(str, spark.kafka_jars())),
        "conf": {
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.ui.enabled": "false",
        },
    }
    airflow.add_connection(spark_conn_id, "spark", host="local[1,4]")
    with (
        ObjectStore.start(folder / "old", "lake") as old,
        ObjectStore.start(folder / "new", root=old.root) as new,
    ):
        sink = LakeSink(airflow, broker, kind, arguments, kind=kind, server=postgres)
        sink.connect(old)
        alter = AlterDag.write(airflow, f"alter_{sink.table_connection}")
        sink.prepare(20)
        run = sink.start()
        sink.wait_running(1)
        yield World(airflow, sink, old, new, alter)
        if airflow.run_state(run) == "running":
            sink.mark(run, "failed")
        sink.wait_no_driver()


def test_keys_that_the_store_refuses_are_found_before_anything_is_changed(world: World) -> None:
    statement = world.statement(world.new, Keys.new(), f"sinks_secret_wrong_{world.sink.kind}")

    run = world.alter.start(statement)
    world.airflow.wait_for_run(run, 300)

    log = world.airflow.task_log(run, "alter")
    assert f'sink "{world.sink.name}" could not run on its new options' in log
    stored = world.airflow.call("GET", f"connections/{world.sink.table_connection}")
    assert world.old.url in stored["extra"]
    assert len(world.sink.launches) == 1


def test_the_running_sink_moves_to_another_server_and_other_keys(world: World) -> None:
    statement = world.statement(world.new, world.new.keys, f"sinks_secret_new_{world.sink.kind}")

    result = world.alter.result(world.alter.start(statement))
    world.sink.wait_through()
    world.old.stop()
    world.sink.wait_through()

    assert result["end"] == "altered", result["log"]
    assert {found["came"] for found in result["on_new"].values()} == {"back"}
    assert len(world.sink.launches) == 2


def test_over_all_that_no_row_is_missing_and_none_is_doubled(world: World) -> None:
    world.sink.demand_all(world.new)
