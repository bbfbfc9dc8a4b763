"""A Spark that is not set up for a sink: what the job says before it writes a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import StatusError
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.streaming import driver_share
from tests.faults.driver import Driver
from tests.live.stage import Sink, Stage

_NO_CONFLUENT_KAFKA = (
    'raise ModuleNotFoundError("No module named \'confluent_kafka\'", name="confluent_kafka")\n'
)
_ON_EXECUTORS = ("--conf", f"{driver_share.SETTING}=0")


@pytest.fixture
def sink(stage: Stage) -> Sink:
    """A sink with a row to write, which Spark computes."""
    source = stage.source("setup", {0: [("k", "v")]})
    return stage.sink("setup", source, from_={"format": "text"}, select=["upper(value) AS value"])


def test_spark_without_the_kafka_jar(sink: Sink, stage: Stage) -> None:
    jars = [str(jar) for jar in spark.kafka_jars() if "sql-kafka" not in jar.name]

    error = _failed(sink.submit("--jars", ",".join(jars)))

    assert error.primary == f'Spark of sink "{sink.parsed.name}" cannot read Kafka'
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13" in error.hint
    assert stage.read(sink.out) == []


def test_executor_without_a_package_that_writers_need(sink: Sink, tmp_path: Path) -> None:
    (tmp_path / "confluent_kafka.py").write_text(_NO_CONFLUENT_KAFKA)

    error = _failed(sink.submit(*_ON_EXECUTORS, "--conf", f"spark.executorEnv.PYTHONPATH={tmp_path}"))

    assert error.primary == "an executor cannot write for this sink"
    assert "an executor has no confluent_kafka" in error.detail
    assert "archives=" in error.hint


def test_a_start_whose_executors_cannot_write_leaves_the_run_in_force_alone(
    stage: Stage, tmp_path: Path
) -> None:
    source = stage.source("in-force", {0: [("k", "v")]})
    computed = {"select": ["upper(value) AS value"], "trigger": {"every": "1s"}}
    sink = stage.sink("in-force", source, from_={"format": "text"}, **computed)
    running = sink.launch()
    running.wait_until(lambda: running.has_passed({0: 1}))
    (tmp_path / "confluent_kafka.py").write_text(_NO_CONFLUENT_KAFKA)

    _failed(sink.submit(*_ON_EXECUTORS, "--conf", f"spark.executorEnv.PYTHONPATH={tmp_path}"))

    stage.produce(source, [(0, "k", "v")])
    running.wait_until(lambda: running.has_passed({0: 2}))
    assert running.stop() == ExitCode.OK


def test_executor_whose_daemon_does_not_start(sink: Sink, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text(
        'raise ModuleNotFoundError("No module named \'pyarrow\'", name="pyarrow")\n'
    )

    error = _failed(sink.submit(*_ON_EXECUTORS, "--conf", f"spark.executorEnv.PYTHONPATH={tmp_path}"))

    assert error.primary == "an executor cannot write for this sink"
    assert "an executor has no pyarrow" in error.detail


def test_executor_without_the_daemon_that_proves_the_end_of_the_input(sink: Sink) -> None:
    error = _failed(sink.submit(*_ON_EXECUTORS, "--conf", "spark.python.use.daemon=false"))

    assert "airflow_provider_sinks.streaming.daemon" in error.detail


def test_settings_that_break_exactly_once_are_named_all_together(sink: Sink) -> None:
    wrong = {"spark.speculation": "true", "spark.python.daemon.module": "pyspark.daemon"}

    error = _failed(sink.submit(*(word for item in wrong.items() for word in ("--conf", "=".join(item)))))

    assert error.primary == "the Spark settings do not fit a sink"
    for name, value in wrong.items():
        assert f"{name}: is set to '{value}'" in error.detail


def test_checkpoint_folder_that_cannot_be_made(sink: Sink, stage: Stage) -> None:
    sink.folder.mkdir(parents=True)
    sink.checkpoints.write_text("a file, where a folder is needed")

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary == f'sink "{sink.parsed.name}" cannot make the folder for its checkpoint'
    assert str(sink.checkpoints) in status.error.detail
    sink.checkpoints.unlink()
    sink.run()
    assert len(stage.read(sink.out)) == 1


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param(
            {"select": ["value", "value.field AS f"]},
            'select[1]: Can\'t extract a value from "value"',
            id="select",
        ),
        pytest.param(
            {"select": ["value", "value.field AS f", "f AS g"], "where": "length(value)"},
            'where: Cannot resolve "length(value)" due to data type mismatch',
            id="where, behind another problem",
        ),
        pytest.param(
            {"query": "SELECT value, sum(array(value)) AS n FROM source GROUP BY value"},
            'query: Cannot resolve "sum(array(value))" due to data type mismatch',
            id="stateful",
        ),
        pytest.param(
            {
                "lookups": {"tables": {"postgres": {"connection": "pg", "table": "pg_catalog.pg_tables"}}},
                "query": "SELECT value, t.tablenam FROM source JOIN tables t ON t.tablename = value",
            },
            "query: A column, variable, or function parameter with name `t`.`tablenam` cannot be resolved",
            id="lookup",
        ),
    ],
)
def test_query_that_spark_does_not_take_is_refused_before_anything_is_made(
    parts: dict[str, Any], said: str, stage: Stage
) -> None:
    source = stage.source("query", {0: [("k", "v")]})
    sink = stage.sink(
        "query", source, from_={"format": "text"}, to={"key": "value", "format": "json"}, **parts
    )

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary == f'Spark does not take the query of sink "{sink.parsed.name}"'
    assert said in status.error.detail
    assert "__sinks_" not in str(status.error)
    assert {sink.out, sink.progress} & set(stage.topics()) == set()


def test_start_that_the_source_does_not_have(stage: Stage) -> None:
    source = stage.source("start", {0: [("k", "v")], 1: [("k", "v")]})
    sink = stage.sink("start", source, from_={"format": "text", "start": {0: 7, 1: 1, 2: 0}})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary == f'the start does not fit source topic "{source}"'
    assert "source.kafka.start.0: offset 7 is not in [0, 1]" in status.error.detail
    assert "source.kafka.start.2: the topic has no partition 2, only 2" in status.error.detail
    assert "source.kafka.start.1" not in status.error.detail


def test_row_that_the_topic_does_not_take(stage: Stage) -> None:
    source = stage.source("large", {0: [("k", "v"), ("k", "x" * 800_000)]})
    sink = stage.sink("large", source, from_={"format": "text"}, select=["repeat(value, 2) AS value"])

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f'topic "{sink.out}" does not take a row' in status.error.primary
    assert f"{source}/0 at offset 1" in status.error.detail
    assert "message.max.bytes" in status.error.hint
    assert stage.read(sink.out) == []


def _failed(driver: Driver) -> StatusError:
    """Return the error of a launch that must end as one that the user has to mend."""
    code, status = driver.wait(), driver.status
    assert status is not None
    assert status.error is not None
    assert code == ExitCode.CONFIGURATION, str(status.error)
    return status.error
