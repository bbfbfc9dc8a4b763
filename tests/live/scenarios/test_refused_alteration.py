"""A data topic that goes missing while the connection of its sink is altered, in a real Airflow."""

from __future__ import annotations

import re
from typing import Any

from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator
from tests.live.airflow_sinks import airflow_sinks
from tests.live.alter_story import AlterDag
from tests.live.client_sink import client_sink
from tests.live.sinks_in_airflow import TASK, AirflowSink

_SPARK = "spark_of_a_refusal"
_FROM_THE_FORM = {"accept": "{{ dag_run.conf.get('accept', '') }}"}
_GO_ON = re.compile(r"continue_without_output-[0-9a-f]{10}")


def test_it_is_refused_at_once_and_the_status_tells_why_until_a_launch_has_committed(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    airflow.add_connection(_SPARK, "spark", host="local[1,4]")
    sink = client_sink(airflow, broker, "refused", _SPARK, arguments=_FROM_THE_FORM)
    alter = AlterDag.write(airflow, f"alter_{sink.name}")
    with sink.fed_all_the_time():
        run = sink.start()
        sink.wait_running(1)
        altering = alter.start(f"ALTER CONNECTION {sink.conn_id} SET (client.id = edited)")
        sink.wait_until(lambda: len(sink.launches) == 2, "the launch for the altered connection")
        admin = AdminClient({**sink.client})
        administrator.delete_topic(admin, f"{sink.name}_out")
        sink.wait_task(run, "failed")
        refused = _status(sink)
        altered = alter.result(altering)
        later = _status(sink)

        code = _GO_ON.search(str(later["hint"]))
        assert code, later
        again = airflow.trigger(sink.name, {"accept": code[0]})
        _demand_told_until_committed(sink, refused["error"], launch=3)
        committed = _status(sink)
        sink.mark(again, "failed")
        sink.wait_no_driver()

    assert airflow.call("GET", f"{run.path}/taskInstances/{TASK}")["try_number"] == 1
    assert "may change back" not in airflow.task_log(run, TASK)
    assert (refused["state"], refused["error"]) == (later["state"], later["error"])
    assert f"{sink.name}_out" in str(refused["error"])
    assert refused["rows_total"] == later["rows_total"] > 0
    assert altered["end"] == "undone", altered["log"]
    assert (committed["state"], committed["error"]) == ("running", None)


def _status(sink: AirflowSink) -> dict[str, Any]:
    """What a person is told, with the exit code of a sink that is well or is not."""
    return dict(airflow_sinks(sink, "status", code=None))


def _demand_told_until_committed(sink: AirflowSink, error: str, launch: int) -> None:
    """Return when a launch has committed; until then the status tells the error, and never zero rows."""

    def has_committed() -> bool:
        shown = sink.shown()
        assert shown["rows_total"] > 0, shown
        assert shown["epoch"] > 0, shown
        if shown["launch"] == launch and shown["rows"]:
            return shown["error"] is None
        assert shown["error"]["primary"] == error, shown
        return False

    sink.wait_until(has_committed, "a launch to commit")
