"""The client, the connection and the validation of a schema registry, on a real one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry as Client
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.clients.schema_registry.schemas import NewSchema, Reference
from airflow_provider_sinks.connectors.schema_registry.source_schemas import registered
from airflow_provider_sinks.core.checks.check import Check, Family, Outcome
from airflow_provider_sinks.core.errors import AuthenticationError, ConfigurationError, UnavailableError
from airflow_provider_sinks.core.schemas.avro import parse
from airflow_provider_sinks.core.schemas.levels import Level
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.ports import free_port
from airflow_provider_sinks.local.schema_registry import SchemaRegistry
from tests.airflow.fakes import SPARK
from tests.airflow_side import airflow_db, connections
from tests.live.gate import LOGIN, PASSWORD, TOKEN, Gate
from tests.live.registered import record
from tests.support import TopicFactory

__all__ = ["airflow_db", "connections"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
ORDER = NewSchema(json.dumps(record("Order", id="long")))
NEXT = NewSchema(json.dumps(record("Order", id="long", note=["null", "string"])))
BROKEN = NewSchema(json.dumps(record("Order", id="long", note="string")))


def client(url: str, **login: str) -> Client:
    return Client(RegistryOptions("registry", {"url": url, **login}))


@pytest.fixture
def subject() -> str:
    """A name of its own."""
    return f"orders-{uuid.uuid4().hex[:8]}-value"


@pytest.fixture
def asked(registry: SchemaRegistry) -> Iterator[Client]:
    """A client of ours."""
    with closing(client(registry.url)) as made:
        yield made


def test_a_registry_says_what_it_has_and_what_may_follow(asked: Client, subject: str) -> None:
    assert (asked.version(subject), asked.versions(subject), asked.find(subject, ORDER)) == (None, (), None)

    known = asked.register(subject, ORDER)

    assert asked.register(subject, ORDER) == asked.find(subject, ORDER) == known
    assert asked.find(subject, NEXT) is None
    found = asked.version(subject)
    assert found is not None
    assert (found.id, found.version, found.text) == (known, 1, ORDER.text)
    assert asked.by_id(known) is not None
    assert asked.by_id(2_000_000_000) is None
    assert asked.level(subject) is Level.NONE
    asked._client.set_compatibility(subject, "BACKWARD")
    assert asked.level(subject) is Level.BACKWARD
    assert [asked.takes(subject, new) for new in (NEXT, BROKEN)] == [True, False]
    assert asked.versions(subject) == (1,)
    with pytest.raises(ConfigurationError, match="it is incompatible"):
        asked.register(subject, BROKEN)


def test_a_subject_without_a_level_has_the_one_of_the_registry(asked: Client, subject: str) -> None:
    assert asked.level(subject) is Level.NONE, "before the subject is there"
    asked.register(subject, ORDER)
    asked._client.set_compatibility(level="BACKWARD")
    try:
        found, takes = asked.level(subject), asked.takes(subject, BROKEN)
    finally:
        asked._client.set_compatibility(level="NONE")

    assert (found, takes) == (Level.BACKWARD, False)


def test_what_a_schema_refers_to_comes_with_it(asked: Client, subject: str) -> None:
    asked.register(subject, ORDER)
    reference = Reference("shop.Order", subject, 1)
    whole = NewSchema(json.dumps(record("Basket", first="shop.Order")), references=(reference,))
    asked.register(f"{subject}-basket", whole)

    found = registered("schema", asked, f"{subject}-basket", 1, Format.AVRO)

    assert found.referred == (("shop.Order", ORDER.text),)
    assert parse(found.text, [ORDER.text]).name == "shop.Basket"
    with pytest.raises(ConfigurationError, match="referred to is not registered"):
        asked.referred((Reference("x", subject, 99),))


@pytest.mark.parametrize("login", [{"login": LOGIN, "password": PASSWORD}, {"password": TOKEN}])
def test_a_password_and_a_token_are_let_in(registry: SchemaRegistry, login: dict[str, str]) -> None:
    with Gate(registry.url) as gate, closing(client(gate.url, **login)) as asked:
        assert "AVRO" in asked.kinds()


@pytest.mark.parametrize("login", [{}, {"login": LOGIN, "password": "falsch"}, {"password": "falsch"}])
def test_who_is_not_let_in_is_told_so_and_not_again(registry: SchemaRegistry, login: dict[str, str]) -> None:
    with (
        Gate(registry.url) as gate,
        closing(client(gate.url, **login)) as asked,
        pytest.raises(AuthenticationError, match="HTTP 401: who are you") as error,
    ):
        asked.kinds()
    assert "falsch" not in str(error.value)


def test_of_several_registries_the_next_one_is_asked(registry: SchemaRegistry) -> None:
    with closing(client(f"http://127.0.0.1:{free_port()},{registry.url}")) as asked:
        assert "AVRO" in asked.kinds()


def test_a_registry_that_is_slow_or_away_or_none_is_told_apart(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.clients.schema_registry import confluent

    with monkeypatch.context() as patch, Gate(registry.url) as gate:
        patch.setitem(confluent._PATIENCE, "timeout", 0.3)
        gate.delay_seconds = 1.0
        with (
            closing(client(gate.url, password=TOKEN)) as asked,
            pytest.raises(UnavailableError, match=r"No answer after .*ReadTimeout"),
        ):
            asked.kinds()
    with (
        closing(client(f"http://127.0.0.1:{free_port()}")) as asked,
        pytest.raises(UnavailableError, match="ConnectError"),
    ):
        asked.kinds()
    with (
        closing(client(f"{registry.url}/nowhere")) as asked,
        pytest.raises(ConfigurationError, match="Name the address that its API begins at"),
    ):
        asked.kinds()


def test_a_spark_without_its_avro_jar_is_told_what_it_lacks(spark_session: SparkSession) -> None:
    from airflow_provider_sinks.streaming.source_reading import demand_avro

    with pytest.raises(ConfigurationError, match="cannot read and write Avro") as error:
        demand_avro(spark_session, "orders")
    assert "org.apache.spark:spark-avro_2.13" in error.value.hint


def test_a_validation_tells_what_a_start_would_do_and_registers_nothing(
    registry: SchemaRegistry,
    broker: KafkaBroker,
    topic: TopicFactory,
    connections: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow_provider_sinks.operators.validate.sink_report import sink_reports

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    for name, value in spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    kafka = {"conn_type": "kafka", "extra": dict(broker.client_config())}
    connections(spark_default=SPARK, kafka_test=kafka, registry={"conn_type": "http", "host": registry.url})
    source, out = topic("source"), topic("out")
    with closing(client(registry.url)) as asked:
        asked.register(f"{source}-value", NewSchema(json.dumps(record("Order", id="string"))))
        asked.register(f"{source}-value", ORDER)
        asked.register(f"{out}-value", NewSchema(json.dumps(record("Out", id="long"))))
        asked._client.set_compatibility(f"{out}-value", "BACKWARD")
        before = set(asked._client.get_subjects())
        selects = {
            "new": (f"{out}-new", ["id"]),
            "widened": (out, ["id"]),
            "changed": (out, ["string(id) AS id"]),
        }
        specs = [sink(name, source, to, select) for name, (to, select) in selects.items()]

        reports = sink_reports(specs, "spark_default", timeout_seconds=300)

        assert set(asked._client.get_subjects()) == before
        assert asked.versions(f"{out}-value") == (1,)
    new, widened, changed = (of_schemas(report.checks) for report in reports)
    read = new["schema of the source's value"]
    assert (read.outcome, "shop.Order, of version 2 of subject" in read.detail) == (Outcome.PASS, True)
    wrote = new["schemas of who wrote the source's value"]
    assert wrote.outcome is Outcome.UNKNOWN
    assert wrote.detail.startswith("version 1 has schema id ")
    assert wrote.detail.endswith("which cannot be read: field id is written as string and read as long")
    name = "schema of the target's value"
    assert new[name].detail == f'new: the start registers the first version of subject "{out}-new-value"'
    assert (widened[name].outcome, "compatible with version 1" in widened[name].detail) == (
        Outcome.PASS,
        True,
    )
    assert changed[name].outcome is Outcome.FAIL
    assert "because field id is written as long and read as null or string" in changed[name].detail


def sink(name: str, source: str, out: str, select: list[str]) -> SinkSpec:
    avro = {"connection": "kafka_test", "format": "avro", "registry": "registry"}
    target: dict[str, Any] = {**avro, "topic": out, "record": "shop.Out"}
    read = {"kafka": {**avro, "topic": source}}
    return SinkSpec.parse({"name": name, "source": read, "target": {"kafka": target}, "select": select})


def of_schemas(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.family is Family.SCHEMAS}
