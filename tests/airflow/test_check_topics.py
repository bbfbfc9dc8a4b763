"""The sensor without services: waiting on a worker and in a triggerer end alike, for the same reasons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.fakes import SINK
from tests.airflow_side import xcom_of

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor
    from tests.airflow_side import RunTask

pytestmark = pytest.mark.usefixtures("spark")
Check = Callable[..., "CheckTopicsSensor"]
UNREADABLE = 'Airflow\'s memory of sink "orders" could not be read'
AWAY = "Kafka at 127.0.0.1:1 could not"


@pytest.fixture
def check(dag: DAG) -> Check:
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    def make(**arguments: Any) -> CheckTopicsSensor:
        defaults = {"task_id": "check", "sink": SINK, "poke_interval": 0.1, "timeout": 0.5, "retries": 2}
        return CheckTopicsSensor(**{**defaults, "dag": dag, **arguments})

    return make


@pytest.fixture
def unreadable(request: pytest.FixtureRequest) -> Iterator[None]:
    """A memory that cannot be read: what a start would do is not known, and to know that takes no broker."""
    from airflow.models.variable import Variable

    request.getfixturevalue("airflow_db")
    Variable.set("sinks.orders.witness", "not JSON")
    yield
    Variable.delete("sinks.orders.witness")


@dataclass(frozen=True)
class End:
    """One way in which a wait for what cannot be seen ends.

    :param arguments: of the sensor.
    :param says: what the error, or the log of a skipped task, says.
    :param sees: the kind of the verdict in the XCom, if there is one.
    """

    name: str
    state: str
    says: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sees: str | None = "wait"


ENDS = [
    End("the-time-is-over", "failed", f"waited 0.5 s for what could not be seen\n{UNREADABLE}"),
    End("no-time-at-all", "failed", UNREADABLE, {"timeout": 0}),
    End("backing-off", "failed", UNREADABLE, {"exponential_backoff": True, "max_wait": 1}),
    End("unknown-fails", "up_for_retry", UNREADABLE, {"on_unknown": "fail", "timeout": 600}),
    End("soft-fail", "skipped", UNREADABLE, {"soft_fail": True}),
    End("soft-fail-unknown-fails", "skipped", UNREADABLE, {"soft_fail": True, "on_unknown": "fail"}),
    End("never-fail", "skipped", UNREADABLE, {"never_fail": True}),
    End("never-fail-unknown-fails", "skipped", UNREADABLE, {"never_fail": True, "on_unknown": "fail"}),
    End("no-connection", "failed", "absent: does not exist", {"sink": {**SINK, "source": "absent/in"}}, None),
    End("no-sink", "failed", "is a list", {"sink": "{{ [1] }}"}, None),
    End("soft-fail-no-sink", "skipped", "is a list", {"sink": "{{ [1] }}", "soft_fail": True}, None),
]


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("deferrable", [False, True], ids=["here", "deferred"])
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_it_ends_alike_deferred_or_not(
    run_task: RunTask, check: Check, capfd: pytest.CaptureFixture[str], end: End, deferrable: bool
) -> None:
    task = check(deferrable=deferrable, **end.arguments)

    result = run_task(task)

    assert result.state == end.state, result.error
    assert end.says in (str(result.error) if result.error else capfd.readouterr().out)
    seen = xcom_of(task.dag_id)
    assert (seen and seen["verdict"]["kind"]) == end.sees


def test_a_broker_that_is_away_is_waited_for_and_then_named(
    run_task: RunTask, check: Check, capfd: pytest.CaptureFixture[str]
) -> None:
    result = run_task(check())

    assert type(result.error).__name__ == "AirflowSensorTimeout"
    assert AWAY in str(result.error)
    assert "verdict: wait: " in capfd.readouterr().out


@pytest.mark.usefixtures("unreadable")
def test_without_a_triggerer_a_worker_looks_a_last_time_and_names_what_it_could_not_see(
    run_task: RunTask, check: Check
) -> None:
    result = run_task(check(deferrable=True, timeout=600), trigger_failed="Trigger timeout")

    assert type(result.error).__name__ == "AirflowSensorTimeout"
    assert UNREADABLE in str(result.error)


@pytest.mark.parametrize(("soft_fail", "state"), [(False, "up_for_retry"), (True, "skipped")])
def test_a_trigger_that_broke_fails_the_try(
    run_task: RunTask, check: Check, soft_fail: bool, state: str
) -> None:
    result = run_task(check(deferrable=True, soft_fail=soft_fail), trigger_failed="Trigger failure")

    assert result.state == state


@pytest.mark.usefixtures("unreadable")
def test_rescheduled_it_waits_without_a_worker_and_ends_alike(run_task: RunTask, check: Check) -> None:
    waiting = run_task(check(mode="reschedule", timeout=600))
    over = run_task(check(mode="reschedule", timeout=0, task_id="over"))

    assert waiting.state == "up_for_reschedule"
    assert over.state == "failed"
    assert UNREADABLE in str(over.error)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sink": ["orders"]}, "sink: is a list (a Sink, a mapping, or JSON text of one)"),
        ({"sink": {**SINK, "tagret": "a/b"}}, 'sink: tagret: is not known (did you mean "target"?)'),
        ({"accept": 5}, "accept: is a int (the code that a refusal printed, or None)"),
        ({"deferrable": "yes"}, "deferrable: is 'yes' (True or False)"),
        ({"on_unknown": "fial"}, "on_unknown: is 'fial' (did you mean \"fail\"?)"),
        ({"on_unknown": None}, "on_unknown: is None (one of wait, fail)"),
        ({"poke_interval": "often"}, "poke_interval"),
        ({"poke_interval": -1}, "poke_interval"),
        ({"timeout": "long"}, "timeout"),
        ({"mode": "deferred"}, "mode"),
        ({"soft_fail": True, "never_fail": True}, "soft_fail and never_fail"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_when_the_dag_is_read(
    check: Check, wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(Exception, match=re.escape(says)):
        check(**wrong)


def test_an_airflow_that_does_not_answer_is_waited_for_where_its_sdk_says_not_defined(
    run_task: RunTask, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.execution_time import context
    from airflow.sdk.execution_time.secrets.execution_api import ExecutionAPISecretsBackend

    def no_answer(*_: object, **__: object) -> None:
        raise ConnectionError("the API server is away")

    monkeypatch.setattr(ExecutionAPISecretsBackend, "get_connection", no_answer)
    monkeypatch.setattr(context, "_get_variable_keys", no_answer)

    result = run_task(check(sink={**SINK, "source": "stored/in"}))

    assert type(result.error).__name__ == "AirflowSensorTimeout"
    assert 'connection "stored" could not be read' in str(result.error)
    assert "the API server is away" in str(result.error)


def test_it_defers_by_default_where_airflow_is_told_so() -> None:
    program = (
        "from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor as Sensor\n"
        f"print(Sensor(task_id='check', sink={SINK!r}).deferrable)"
    )
    environment = {**os.environ, "AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE": "True"}

    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.split()[-1] == "True"
