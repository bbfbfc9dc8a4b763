"""The sensor against a real broker: each decision twice, waiting on a worker and in a triggerer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from tests.airflow.fakes import SPARK, FakeSpark, status
from tests.airflow_side import RunTask, airflow_db, connections, dag, run_task, spark, submit, xcom_of
from tests.live.sink_world import SinkWorld

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor
    from tests.airflow_side import Submit

__all__ = ["airflow_db", "connections", "dag", "run_task", "spark", "submit"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
both_ways = pytest.mark.parametrize("deferrable", [False, True], ids=["here", "deferred"])
Check = Callable[..., "CheckTopicsSensor"]
AfterFirstLook = Callable[[Callable[[], object]], None]


@pytest.fixture
def world(request: pytest.FixtureRequest, broker: KafkaBroker, connections: Callable[..., None]) -> SinkWorld:
    """A sink on the shared broker, whose progress records belong to this Airflow."""
    from airflow.models.variable import Variable

    request.getfixturevalue("airflow_db")
    kafka = {"conn_type": "kafka", "extra": broker.client_config()}
    connections(src=kafka, dst=kafka, spark_default=SPARK)
    sink = SinkWorld(broker, f"check_{uuid.uuid4().hex[:8]}")
    Variable.set("sinks.owner", sink.owner)
    return sink


@pytest.fixture
def check(dag: DAG) -> Check:
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    def make(**arguments: Any) -> CheckTopicsSensor:
        return CheckTopicsSensor(
            **{"task_id": "check", "poke_interval": 0.2, "retries": 2, "dag": dag, **arguments}
        )

    return make


@pytest.fixture
def after_first_look(monkeypatch: pytest.MonkeyPatch) -> AfterFirstLook:
    """Let something happen while the sensor waits: when its first look is over, and before the next."""
    from airflow_provider_sinks.lifecycle.dry_run import dry_run
    from airflow_provider_sinks.sensors import check_topics

    def arrange(act: Callable[[], object]) -> None:
        def first(*arguments: Any) -> Any:
            seen = dry_run(*arguments)
            monkeypatch.setattr(check_topics, "dry_run", dry_run)
            assert seen.waits
            act()
            return seen

        monkeypatch.setattr(check_topics, "dry_run", first)

    return arrange


@dataclass(frozen=True)
class Case:
    """A situation, and what the sensor makes of it.

    :param arrange: makes the situation.
    :param sees: the kind of the verdict in the XCom.
    :param says: what the error says.
    """

    name: str
    arrange: Callable[[SinkWorld], object]
    state: str
    sees: str
    says: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def _new(world: SinkWorld) -> None:
    world.create(world.source)


def _running(world: SinkWorld) -> None:
    _new(world)
    world.start()
    world.write(1)


def _output_lost(world: SinkWorld) -> None:
    _running(world)
    world.delete(world.data)


def _nothing(world: SinkWorld) -> None:
    del world


SHORT = {"timeout": 0.5}
CASES = [
    Case("new", _new, "success", "start"),
    Case("running", _running, "success", "resume"),
    Case("output-lost", _output_lost, "failed", "refuse", 'accept="continue_without_output-'),
    Case("output-lost-soft", _output_lost, "skipped", "refuse", arguments={"soft_fail": True}),
    Case("no-source", _nothing, "failed", "wait", "waited 0.5 s for what could not be seen", SHORT),
    Case("no-source-fails", _nothing, "up_for_retry", "wait", "does not exist", {"on_unknown": "fail"}),
]


@both_ways
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_decides_alike_deferred_or_not(
    run_task: RunTask, check: Check, world: SinkWorld, case: Case, deferrable: bool
) -> None:
    case.arrange(world)
    before = world.topics()
    task = check(sink=world.spec, deferrable=deferrable, **case.arguments)

    result = run_task(task)

    assert result.state == case.state, result.error
    assert case.says in str(result.error)
    assert xcom_of(task.dag_id)["verdict"]["kind"] == case.sees
    assert world.topics() == before


@both_ways
def test_the_code_of_a_refusal_is_data_and_is_taken(
    run_task: RunTask, check: Check, world: SinkWorld, deferrable: bool
) -> None:
    _output_lost(world)
    task = check(sink=world.spec, deferrable=deferrable)
    run_task(task)
    code = xcom_of(task.dag_id)["verdict"]["ways"][0]

    accepted = run_task(check(task_id="again", sink=world.spec, accept=code, deferrable=deferrable))

    assert accepted.state == "success", accepted.error


@both_ways
def test_it_goes_on_when_the_source_topic_appears(
    run_task: RunTask, check: Check, world: SinkWorld, after_first_look: AfterFirstLook, deferrable: bool
) -> None:
    after_first_look(lambda: world.create(world.source))
    task = check(sink=world.spec, deferrable=deferrable)

    result = run_task(task)

    assert result.state == "success", result.error
    seen = xcom_of(task.dag_id)
    assert seen["verdict"]["kind"] == "start"
    assert seen["observation"]["topics"]["source"]["existence"] == "present"


@pytest.fixture
def remembered(run_task: RunTask, submit: Submit, spark: FakeSpark, world: SinkWorld) -> SinkWorld:
    """A sink that wrote 40 rows, as Airflow remembers it in both places; Kafka does not."""
    world.create(world.source)
    spark.play(statuses=[status(state="stopped", epoch=3, rows=9, rows_total=40)])
    run_task(submit(sink=world.spec))
    return world


@both_ways
def test_a_witness_that_no_trigger_can_read_still_refuses(
    run_task: RunTask, check: Check, remembered: SinkWorld, after_first_look: AfterFirstLook, deferrable: bool
) -> None:
    """The trigger sees a new sink and rings; the worker, which reads the asset's store too, refuses."""
    from airflow.models.variable import Variable

    variable = f"sinks.{remembered.name}.witness"
    Variable.set(variable, "not JSON")
    after_first_look(lambda: Variable.delete(variable))

    result = run_task(check(sink=remembered.spec, deferrable=deferrable))

    assert result.state == "failed"
    assert "40 rows" in str(result.error)


@pytest.fixture
def slow_broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of the test's own, which demands one of three users."""
    sasl = Sasl(Mechanism.PLAIN, {f"user{number}": f"secret{number}" for number in range(3)})
    with KafkaBroker.start(tmp_path / "kafka", sasl=sasl) as running:
        yield running


def test_a_frozen_broker_is_named_and_other_secrets_at_every_read_do_no_harm(
    run_task: RunTask, check: Check, slow_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.configuration import clear_secrets_backends_cache

    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "tests.live.rotating_secrets.RotatingSecrets")
    extras = [slow_broker.client_config(f"user{number}") for number in range(3)]
    monkeypatch.setenv("ROTATING_SECRETS", json.dumps(extras))
    clear_secrets_backends_cache()
    world = SinkWorld(slow_broker, "rotating")
    world.create(world.source)
    slow_broker.pause()

    frozen = run_task(check(sink=world.spec, on_unknown="fail"))
    slow_broker.resume()
    ends = [
        run_task(check(sink=world.spec, task_id=f"check{number}", deferrable=True)) for number in range(3)
    ]
    clear_secrets_backends_cache()

    assert frozen.state == "up_for_retry"
    assert f"Kafka at {slow_broker.bootstrap} could not" in str(frozen.error)
    assert [end.state for end in ends] == ["success"] * 3, [end.error for end in ends]
