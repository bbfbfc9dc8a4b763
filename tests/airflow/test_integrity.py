"""What Airflow asks of every operator, sensor and trigger. A new one needs a line in ``SAMPLES``."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks import get_provider_info
from tests.airflow.fakes import SINK
from tests.airflow.test_dags import parse

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseOperator
    from airflow.triggers.base import BaseTrigger

EVERY_OPERATOR = Path(__file__).with_name("every_operator")

STATEMENT = "ALTER CONNECTION kafka_prod DROP (client.id)"

SAMPLES: dict[str, dict[str, Any]] = {
    "operators.alter_connection_restart.AlterConnectionRestartOperator": {"statement": STATEMENT},
    "operators.replay_dead_letters.BeginReplayOperator": {"sink": "orders", "error": ["parse"]},
    "operators.replay_dead_letters.SubmitReplayOperator": {"replays": "orders", "begun": "{}"},
    "operators.sink_life.DropSinkOperator": {"sink": "orders", "delete_topics": ["orders-out"]},
    "operators.sink_life.PauseSinkOperator": {"sink": "orders"},
    "operators.sink_life.ResetSinkOperator": {"sink": "orders", "data": "empty"},
    "operators.sink_life.RestartSinkOperator": {"sink": SINK},
    "operators.sink_life.ResumeSinkOperator": {"sink": "orders", "dry_run": True},
    "operators.sink_life.RewindSinkOperator": {"sink": "orders", "offsets": {0: 120}},
    "operators.submit_sink_job.SubmitSinkJobOperator": {"sink": SINK, "packages": "a:b:1"},
    "operators.validate_connection.ValidateConnectionOperator": {"sink": SINK},
    "sensors.check_topics.CheckTopicsSensor": {"sink": SINK, "deferrable": True},
    "triggers.check_topics.CheckTopicsTrigger": {
        "sink": SINK,
        "accept": None,
        "deadline": 1_700_000_000.5,
        "poke_interval": 30.0,
        "longest_interval": None,
    },
    "triggers.sink_driver.SinkDriverTrigger": {
        "application_id": "application_1_0001",
        "spark_conn_id": "spark_default",
        "status_uri": "s3://bucket/status.json",
        "sink": SINK,
        "poll_interval": 10.0,
        "cancel_on_kill": True,
        "follow_connections": True,
        "launched": {"kafka_test": "0123456789abcdef"},
    },
}
"""Valid arguments; of a trigger all that it has."""


def declared(*kinds: str) -> Iterator[str]:
    """Yield the classes of the provider's modules, such as ``sensors.check_topics.CheckTopicsSensor``."""
    for entry in (entry for kind in kinds for entry in get_provider_info()[kind]):
        for name in entry["python-modules"]:
            own = [value for value in vars(importlib.import_module(name)).values() if inspect.isclass(value)]
            for found in own:
                bases = {base.__name__ for base in found.__mro__}
                is_ours = found.__module__ == name and not inspect.isabstract(found)
                if is_ours and bases & {"BaseOperator", "BaseTrigger"}:
                    yield f"{name.removeprefix('airflow_provider_sinks.')}.{found.__name__}"


def class_of(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"airflow_provider_sinks.{module}"), name)


TASKS = [path for path in SAMPLES if not path.startswith("triggers.")]
TRIGGERS = [path for path in SAMPLES if path.startswith("triggers.")]


def short(path: str) -> str:
    return path.rpartition(".")[2]


@pytest.fixture(params=TASKS, ids=short)
def task(request: pytest.FixtureRequest, dag: DAG) -> BaseOperator:
    """One task of each class."""
    made: BaseOperator = class_of(request.param)(task_id="sample", dag=dag, **SAMPLES[request.param])
    return made


@pytest.fixture(params=TRIGGERS, ids=short)
def trigger(request: pytest.FixtureRequest) -> BaseTrigger:
    """One trigger of each class."""
    made: BaseTrigger = class_of(request.param)(**SAMPLES[request.param])
    return made


def test_there_is_a_sample_of_each_class() -> None:
    assert set(declared("operators", "sensors", "triggers")) == set(SAMPLES)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def parsed(home: Path) -> dict[str, Any]:
    return parse(home, EVERY_OPERATOR)


def test_all_of_them_parse_without_network_spark_kafka_and_lookups(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    tasks = [task["__var"] for dag in parsed["dags"].values() for task in dag["dag"]["tasks"]]
    used = {f"{task['_task_module']}.{task['task_type']}" for task in tasks}
    assert {f"airflow_provider_sinks.{path}" for path in TASKS} <= used


def test_all_of_them_serialise_to_the_same_bytes_every_time(parsed: dict[str, Any], home: Path) -> None:
    again = parse(home, EVERY_OPERATOR)

    assert json.dumps(again["dags"], sort_keys=True) == json.dumps(parsed["dags"], sort_keys=True)


def test_what_was_serialised_can_be_read_back(parsed: dict[str, Any]) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag_id, data in parsed["dags"].items():
        dag = DagSerialization.from_dict(data)

        assert dag.dag_id == dag_id
        assert len(dag.task_ids) == len(data["dag"]["tasks"])


def test_each_template_field_is_an_attribute_and_an_argument(task: BaseOperator) -> None:
    accepted = {name for base in type(task).__mro__ for name in inspect.signature(base).parameters}

    assert [field for field in task.template_fields if not hasattr(task, field)] == []
    assert set(task.template_fields) <= accepted
    assert set(task.template_fields_renderers) <= set(task.template_fields)


def test_it_can_be_copied_pickled_and_its_output_used(task: BaseOperator) -> None:
    copied = copy.deepcopy(task)

    assert {field: getattr(copied, field) for field in task.template_fields} == {
        field: getattr(task, field) for field in task.template_fields
    }
    assert pickle.loads(pickle.dumps(task)).task_id == task.task_id  # noqa: S301  our own
    assert dict(task.output.iter_references()) == {task: "return_value"}


def _path(task: BaseOperator) -> str:
    return next(path for path in TASKS if short(path) == type(task).__name__)


def test_making_it_changes_nothing_of_what_was_given(task: BaseOperator, dag: DAG) -> None:
    given: dict[str, Any] = {**copy.deepcopy(SAMPLES[_path(task)]), "inlets": [], "outlets": []}
    before = copy.deepcopy(given)

    type(task)(task_id="another", dag=dag, **given)

    assert given == before


def test_it_can_be_mapped_over_what_it_is_about(task: BaseOperator, dag: DAG) -> None:
    sinks = [{**SINK, "name": name} for name in ("one", "two")]
    subjects: dict[str, list[Any]] = {
        "replays": ["one", "two"],
        "sink": sinks,
        "statement": [STATEMENT, f"{STATEMENT};"],
    }
    name, values = next((name, values) for name, values in subjects.items() if hasattr(task, name))
    others = {key: value for key, value in SAMPLES[_path(task)].items() if key != name}

    mapped = type(task).partial(task_id="many", dag=dag, **others).expand(**{name: values})

    assert getattr(mapped.unmap({name: values[1]}), name) == values[1]
    assert dict(mapped.output.iter_references()) == {mapped: "return_value"}


def test_it_takes_the_default_arguments_of_a_dag(task: BaseOperator) -> None:
    from airflow.sdk import DAG

    with DAG("defaults", schedule=None, default_args={"retries": 7, "owner": "me", "pool": "streams"}) as dag:
        path = next(path for path in TASKS if short(path) == type(task).__name__)
        made = type(task)(task_id="sample", dag=dag, **SAMPLES[path])

    assert (made.retries, made.owner, made.pool) == (7, "me", "streams")


def test_each_argument_is_explained(task: BaseOperator) -> None:
    arguments = [name for name in inspect.signature(type(task)).parameters if name not in ("self", "kwargs")]

    assert [name for name in arguments if f":param {name}:" not in (type(task).__doc__ or "")] == []


def test_a_trigger_survives_being_stored(trigger: BaseTrigger) -> None:
    from airflow.models.trigger import Trigger
    from airflow.sdk._shared.module_loading import import_string

    path, kwargs = trigger.serialize()
    stored = Trigger(path, json.loads(json.dumps(kwargs)))
    again = import_string(stored.classpath)(**stored.kwargs)

    assert again.serialize() == (path, kwargs)
    assert kwargs == SAMPLES[path.removeprefix("airflow_provider_sinks.")]
    assert set(kwargs) == set(inspect.signature(type(trigger)).parameters)
