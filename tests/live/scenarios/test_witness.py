"""What Airflow remembers of a sink, in a real Airflow: what it refuses, and which answer allows what.

Each sink runs on Spark in the task's own process, ``local[1,4]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests import administrator
from tests.faults import topics
from tests.live.client_sink import client_sink
from tests.live.sinks_in_airflow import RETRIES, TASK, AirflowSink

_SPARK = "spark_in_the_task"
_FROM_THE_FORM = {"accept": "{{ dag_run.conf.get('accept', '') }}"}


@pytest.fixture(scope="module")
def here(airflow: AirflowStack) -> AirflowStack:
    """An Airflow whose tasks run Spark themselves."""
    airflow.add_connection(_SPARK, "spark", host="local[1,4]")
    return airflow


@pytest.fixture
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowStack]:
    """A second Airflow, which shares nothing with the first."""
    home = tmp_path_factory.mktemp("another airflow")
    with (
        Postgres.start(home / "metadata") as airflow_postgres,
        AirflowStack.start(
            home, home / "dags", spark.spark_environment(), postgres=airflow_postgres
        ) as running,
    ):
        running.add_connection(_SPARK, "spark", host="local[1,4]")
        yield running


def test_a_lost_progress_topic_is_refused_and_each_answer_fits_once(
    here: AirflowStack, broker: KafkaBroker
) -> None:
    sink = client_sink(
        here, broker, "answered", _SPARK, rows=20, arguments=_FROM_THE_FORM, trigger="available_now"
    )
    assert ended(sink) == "success"
    sink.feed(20)
    lose_progress(sink)

    refused = sink.start()
    assert here.wait_for_run(refused) == "failed"
    code = answer(sink, refused)
    assert tries(sink, refused) == 1
    assert len(topics.read(sink.client, f"{sink.name}_out")) == 40

    assert ended(sink, accept=code) == "success"
    sink.demand_exact(rows_min=80)

    lose_progress(sink)
    again = here.trigger(sink.name, {"accept": code})
    assert here.wait_for_run(again) == "failed"
    assert answer(sink, again) != code
    assert f'The code accept="{code}" does not fit what is seen now' in here.task_log(again, TASK)


def test_a_code_that_a_running_job_prints_fits_the_next_start_and_no_other_case(
    here: AirflowStack, broker: KafkaBroker
) -> None:
    sink = client_sink(here, broker, "under_way", _SPARK, arguments=_FROM_THE_FORM)
    first = sink.start()
    sink.wait_running(1)
    sink.wait_until(lambda: is_through(sink, 1), "all rows")
    lose_output(sink)
    assert here.wait_for_run(first) == "failed"
    code = answer(sink, first, "continue_without_output")
    assert (tries(sink, first), len(sink.launches)) == (1, 1)

    sink.feed(10)
    accepted = here.trigger(sink.name, {"accept": code})
    sink.wait_running(2)
    sink.wait_until(lambda: is_through(sink, 2), "all rows")
    sink.mark(accepted, "failed")
    sink.wait_no_driver()
    visible = {record.value for record in topics.read(sink.client, f"{sink.name}_out")}
    assert visible == {f"{partition}-{row}".encode() for partition in range(2) for row in range(20, 30)}

    lose_output(sink)
    again = here.trigger(sink.name, {"accept": code})
    assert here.wait_for_run(again) == "failed"
    assert answer(sink, again, "continue_without_output") != code
    assert f'The code accept="{code}" does not fit what is seen now' in here.task_log(again, TASK)


def test_a_sink_that_never_wrote_starts_again_after_its_topics_are_gone(
    here: AirflowStack, broker: KafkaBroker
) -> None:
    sink = client_sink(here, broker, "idle", _SPARK, rows=0, trigger="available_now")
    assert ended(sink) == "success"
    lose_progress(sink)
    sink.feed(10)

    assert ended(sink) == "success"
    sink.demand_exact(rows_min=20)


def test_another_airflow_with_the_same_sink_is_refused_and_disturbs_nobody(
    here: AirflowStack, another: AirflowStack, broker: KafkaBroker
) -> None:
    sink = client_sink(here, broker, "twice", _SPARK)
    with sink.fed_all_the_time():
        run = sink.start()
        before = sink.wait_running(1)

        theirs = replace(sink, airflow=another)
        vars(theirs)["name"] = sink.name
        another.add_connection(sink.conn_id, "kafka", extra=sink.client)
        theirs.write_dag(sink.name)
        refused = theirs.start()
        assert another.wait_for_run(refused) == "failed"
        assert tries(theirs, refused) < RETRIES
        assert "another Airflow" in another.task_log(refused, TASK)

        sink.wait_until(lambda: running_epoch(sink) > before.epoch + 3, "more epochs of the first")
        assert len(sink.launches) == 1
        sink.mark(run, "failed")
        sink.wait_no_driver()
    sink.demand_exact()


def ended(sink: AirflowSink, **conf: str) -> str:
    """Run the sink's DAG to its end."""
    return sink.airflow.wait_for_run(sink.airflow.trigger(sink.name, conf))


def lose_progress(sink: AirflowSink) -> None:
    administrator.delete_topic(AdminClient({**sink.client}), f"_sinks-progress-{sink.name}")


def lose_output(sink: AirflowSink) -> None:
    administrator.delete_topic(AdminClient({**sink.client}), f"{sink.name}_out")


def is_through(sink: AirflowSink, launch: int) -> bool:
    status = sink.status(launch)
    return status is not None and set(status.positions.values()) == {sink.fed}


def answer(sink: AirflowSink, run: DagRun, way: str = "resume_from_witness") -> str:
    """Return the code of an answer; by default of the one that goes on where Airflow remembers."""
    log = sink.airflow.task_log(run, TASK)
    found = re.search(rf'accept="({way}-[0-9a-f]{{10}})":', log)
    assert found, log
    return found[1]


def tries(sink: AirflowSink, run: DagRun) -> int:
    return int(sink.airflow.call("GET", f"{run.path}/taskInstances/{TASK}")["try_number"])


def running_epoch(sink: AirflowSink) -> int:
    status = sink.status(1)
    assert status is not None
    assert status.state is SinkState.RUNNING
    return status.epoch
