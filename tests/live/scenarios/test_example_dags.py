"""Each example DAG, run by ``airflow dags test`` as a reader of the docs would run it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.object_store import ObjectStore, delta_extra, iceberg_extra
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.schema_registry import SchemaRegistry
from airflow_provider_sinks.local.spark import spark_environment
from airflow_provider_sinks.local.stack import SPARK_MASTER, spark_settings
from scripts.demo.lakehouse_act import delta_views, iceberg_views
from scripts.demo.pageviews import create_topic, fill_table, fill_topic, pageviews
from tests.live.sink_world import SinkWorld

DAGS = Path(__file__).parents[3] / "dags"
EXAMPLES = {
    "clicks_by_hand": "clicks_by_hand.py",
    "clicks_by_region": "clicks_by_region.py",
    "clicks_clean": "sinks_from_yaml.py",
    "orders_avro": "orders_avro.py",
    "pageviews_clean": "pageviews_clean.py",
    "pageviews_enriched": "pageviews_enriched.py",
    "pageviews_report": "pageviews_report.py",
    "pageviews_table": "pageviews_table.py",
    "run_sink_once": "run_sink_once.py",
    "run_sink_once_into_a_table": "run_sink_once.py",
    "views_in_delta": "lakehouse.py",
    "views_in_iceberg": "lakehouse.py",
    "views_in_kafka": "lakehouse.py",
    "views_in_postgres": "lakehouse.py",
}
FORMS = ("alter_connection.py", "replay_dead_letters.py", "sink_forms.py")
"""They act on an Airflow that runs: tests/live/scenarios, tests/live/test_sink_commands.py
and tests/live/test_dead_letter_commands.py fill them in."""
VIEWS, CLICKS = 300, 60
ORDERS, BROKEN_ORDER = 40, 7
LONGEST_SECONDS = 240.0
BUTTONS = ("Buy", "buy", "look")


@dataclass(frozen=True)
class Examples:
    """The runs of all examples, two at a time.

    :param folder: takes what they print.
    :param environment: of ``airflow dags test``: an Airflow's, with the connections that the examples name.
    """

    folder: Path
    world: SinkWorld
    environment: Mapping[str, str]
    runs: dict[str, Future[str]]

    def output_of(self, dag_id: str) -> str:
        """Return what the run of an example printed, when it has ended."""
        return self.runs[dag_id].result()

    def rows_of(self, topic: str) -> list[dict[str, object]]:
        """Return the committed rows of a target."""
        return [json.loads(value) for _, value in self.world.read(topic) if value is not None]

    def run(self, dag_id: str) -> str:
        """Run an example to its end; an endless one until it has written everything."""
        command = [sys.executable, "-m", "airflow", "dags", "test", dag_id]
        log = self.folder / f"{dag_id}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, "--dagfile-path", str(DAGS / EXAMPLES[dag_id])],
                env={**self.environment, **self._database(dag_id)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            if dag_id == "pageviews_clean":
                self._stop_when_written(dag_id, "pageviews-clean", process)
            code = process.wait(LONGEST_SECONDS)
        assert code == 0, f"{dag_id}: {log.read_text()[-5000:]}"
        return log.read_text()

    def _database(self, dag_id: str) -> dict[str, str]:
        """Copy Airflow's database: two ``airflow dags test`` at once would write the same assets into it."""
        original = self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].removeprefix("sqlite:///")
        original, _, _ = original.partition("?")
        copy = self.folder / f"{dag_id}.db"
        with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{copy}"}

    def _stop_when_written(self, dag_id: str, topic: str, process: subprocess.Popen[bytes]) -> None:
        """Ask the driver to end between two epochs, as the operator does when its task is ended."""
        launches = Path(self.environment["AIRFLOW_HOME"]) / "sinks" / "launches" / dag_id
        pause, deadline = Event(), time.monotonic() + LONGEST_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            known = self.world.admin.list_topics(timeout=10).topics
            if topic in known and len(self.world.read(topic)) >= VIEWS:
                (launch,) = launches.iterdir()
                (launch / "stop").touch()
                return
            pause.wait(0.5)


def connections(
    broker: KafkaBroker, postgres: Postgres, registry: SchemaRegistry, store: ObjectStore
) -> dict[str, str]:
    """Return the connections that the examples name, as a user of ``airflow dags test`` defines them."""
    kafka = {"conn_type": "kafka", "extra": broker.client_config()}
    fields = {"host": postgres.host, "port": postgres.port, "login": postgres.user}
    database = {**fields, "password": postgres.password, "schema": postgres.dbname}
    return {
        "AIRFLOW_CONN_KAFKA_PROD": json.dumps(kafka),
        "AIRFLOW_CONN_PG_PROD": json.dumps({"conn_type": "postgres", **database}),
        "AIRFLOW_CONN_REGISTRY_PROD": json.dumps({"conn_type": "http", "host": registry.url}),
        "AIRFLOW_CONN_LAKE_PROD": json.dumps(
            {"conn_type": "iceberg", **database, "extra": iceberg_extra(store)}
        ),
        "AIRFLOW_CONN_STORE_PROD": json.dumps({"conn_type": "delta", "extra": delta_extra(store)}),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": SPARK_MASTER}),
    }


def fill(broker: KafkaBroker, postgres: Postgres) -> None:
    """Make the sources of the examples."""
    for topic in ("pageviews", "clicks", "clicks-eu", "clicks-us", "orders"):
        create_topic(broker, topic, partitions=2)
    fill_topic(broker, "pageviews", Event(), lambda _: None, VIEWS)
    producer = Producer(broker.client_config())
    for topic in ("clicks", "clicks-eu", "clicks-us"):
        for number in range(CLICKS):
            click: dict[str, int | str] = {
                "at": number,
                "userid": f"User_{number}",
                "button": BUTTONS[number % len(BUTTONS)],
            }
            producer.produce(topic, json.dumps(click), str(click["userid"]))
    for number in range(ORDERS):
        amount = number + 0.5 if number == BROKEN_ORDER else number
        producer.produce("orders", json.dumps({"id": number, "what": "tea", "amount": amount}), str(number))
    assert producer.flush(30) == 0
    with postgres.connect() as connection:
        fill_table(connection)
        connection.execute(
            "CREATE TABLE public.clicks (at bigint, userid text, button text, PRIMARY KEY (userid, at))"
        )


@pytest.fixture(scope="module")
def examples(
    broker: KafkaBroker,
    postgres: Postgres,
    registry: SchemaRegistry,
    object_store: ObjectStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Examples]:
    fill(broker, postgres)
    settings = spark_settings(tmp_path_factory.mktemp("spark") / "conf")
    environment = {
        **AirflowStack.make(tmp_path_factory.mktemp("airflow"), DAGS).environment,
        **spark_environment(),
        **connections(broker, postgres, registry, object_store),
        "SPARK_CONF_DIR": str(settings),
    }
    with ThreadPoolExecutor(max_workers=2) as two:
        found = Examples(settings, SinkWorld(broker, "examples"), environment, {})
        found.runs.update({dag_id: two.submit(found.run, dag_id) for dag_id in EXAMPLES})
        yield found


def test_every_example_is_run() -> None:
    assert sorted({*EXAMPLES.values(), *FORMS}) == sorted(file.name for file in DAGS.glob("*.py"))


def test_one_sink_by_hand(examples: Examples) -> None:
    examples.output_of("clicks_by_hand")

    assert len(examples.rows_of("clicks-bought")) == CLICKS // len(BUTTONS)


def test_one_sink_from_a_form(examples: Examples) -> None:
    examples.output_of("run_sink_once")

    assert len(examples.rows_of("clicks-once")) == CLICKS // len(BUTTONS)


def test_one_sink_into_a_table_from_a_form(examples: Examples, postgres: Postgres) -> None:
    examples.output_of("run_sink_once_into_a_table")
    with postgres.connect() as connection:
        found = connection.execute(
            "SELECT count(*), count(DISTINCT (userid, at)) FROM public.clicks"
        ).fetchone()

    assert found == (CLICKS // len(BUTTONS),) * 2


def test_many_sinks_mapped(examples: Examples) -> None:
    examples.output_of("clicks_by_region")

    assert [len(examples.rows_of(f"clicks-{region}-clean")) for region in ("eu", "us")] == [CLICKS, CLICKS]


def test_a_sink_from_yaml(examples: Examples) -> None:
    examples.output_of("clicks_clean")

    assert {row["button"] for row in examples.rows_of("clicks-clean")} == {"buy", "look"}


def test_an_endless_sink_from_the_factory(examples: Examples) -> None:
    examples.output_of("pageviews_clean")

    assert len(examples.rows_of("pageviews-clean")) == VIEWS


def test_a_sink_with_a_lookup_from_the_factory(examples: Examples) -> None:
    examples.output_of("pageviews_enriched")
    rows = examples.rows_of("pageviews-enriched")

    assert sorted(str(row["viewtime"]) for row in rows) == sorted(str(v.viewtime) for v in pageviews(VIEWS))
    assert any(row.get("region") for row in rows)


def test_a_sink_into_a_table(examples: Examples, postgres: Postgres) -> None:
    examples.output_of("pageviews_table")
    with postgres.connect() as connection:
        rows = connection.execute("SELECT viewtime FROM public.pageviews").fetchall()

    assert sorted(viewtime for (viewtime,) in rows) == sorted(view.viewtime for view in pageviews(VIEWS))


def test_four_sinks_of_one_file(examples: Examples, postgres: Postgres, object_store: ObjectStore) -> None:
    for target in ("kafka", "postgres", "iceberg", "delta"):
        examples.output_of(f"views_in_{target}")
    with postgres.connect() as connection:
        in_postgres = connection.execute("SELECT viewtime FROM public.views").fetchall()
    found = {
        "kafka": [row["viewtime"] for row in examples.rows_of("views")],
        "postgres": [viewtime for (viewtime,) in in_postgres],
        "iceberg": [viewtime for _, _, viewtime in iceberg_views(postgres, object_store)],
        "delta": [viewtime for _, _, viewtime in delta_views(object_store)],
    }

    wanted = sorted(view.viewtime for view in pageviews(VIEWS))
    assert {target: sorted(times) for target, times in found.items()} == dict.fromkeys(found, wanted)


def test_a_sink_that_writes_avro(examples: Examples, registry: SchemaRegistry) -> None:
    examples.output_of("orders_avro")
    context = SerializationContext("orders-avro", MessageField("value"))
    with SchemaRegistryClient({"url": registry.url}) as client:
        read = AvroDeserializer(client)
        found = [read(value, context) for _, value in examples.world.read("orders-avro")]

    assert sorted(row["id"] for row in found) == [n for n in range(ORDERS) if n != BROKEN_ORDER]
    assert len(examples.world.read("orders-dead")) == 1


def test_a_dag_that_runs_when_a_sink_has_written(examples: Examples) -> None:
    assert "report" in examples.output_of("pageviews_report")
