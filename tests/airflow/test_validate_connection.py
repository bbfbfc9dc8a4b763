"""Validation without services: what can be told from the connections alone, and a broker that is away."""

from __future__ import annotations

import json
import re
import socket
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.fakes import SINK

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
    from tests.airflow_side import RunTask

pytestmark = pytest.mark.usefixtures("spark")
Validate = Callable[..., "ValidateConnectionOperator"]


@pytest.fixture
def validate(dag: DAG) -> Validate:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    def make(**arguments: Any) -> ValidateConnectionOperator:
        return ValidateConnectionOperator(**{"task_id": "validate", "retries": 2, "dag": dag, **arguments})

    return make


def checks_of(dag_id: str) -> dict[str, dict[str, Any]]:
    """Return the report that a task left as its XCom, by the name of the check."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        (found,) = session.query(XComModel).filter_by(dag_id=dag_id, key="return_value").all()
        checks = XComModel.deserialize_value(found)
    return {f"{check['subject']}: {check['name']}": check for check in checks}


def test_all_problems_are_reported_at_once_and_fail_the_task(
    run_task: RunTask, validate: Validate, dag: DAG, connections: Callable[..., None]
) -> None:
    connections(
        kafka_test={"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1", "sasl.jaas.config": "x"}}
    )
    lookups = {"users": "absent/public.users"}
    sink = {**SINK, "lookups": lookups, "query": "SELECT s.value FROM source s LEFT JOIN users u ON true"}

    result = run_task(validate(sink=sink, spark_conn_id="nowhere"))

    assert result.state == "failed"
    assert '3 of 4 checks of sink "orders" failed' in str(result.error)
    checks = checks_of(dag.dag_id)
    assert "does not exist" in checks["nowhere: connection"]["detail"]
    assert "sasl.jaas.config: is refused" in checks["kafka_test: options"]["detail"]
    assert "does not exist" in checks["absent: options"]["detail"]
    assert "what lookup users holds is not known" in checks["orders: SQL, by Spark"]["detail"]


def test_a_broker_that_is_away_is_tried_again(run_task: RunTask, validate: Validate, dag: DAG) -> None:
    result = run_task(validate(sink=SINK))

    assert result.state == "up_for_retry"
    checks = checks_of(dag.dag_id)
    assert checks["kafka_test: options"]["outcome"] == "pass"
    assert checks["kafka_test: TCP"]["outcome"] == "fail"
    assert checks["kafka_test: TCP"]["retryable"]
    assert checks["kafka_test: permissions"]["outcome"] == "skipped"


@pytest.mark.parametrize(
    ("ask_spark", "said"),
    [
        ("auto", ("unknown", "the job asks Spark before it makes anything")),
        ("always", ("fail", "Spark ended without an answer")),
        ("never", ("skipped", "the job asks Spark before it makes anything")),
    ],
)
def test_a_report_is_never_silent_about_the_sql(
    run_task: RunTask, validate: Validate, dag: DAG, ask_spark: str, said: tuple[str, str]
) -> None:
    run_task(validate(sink=SINK, ask_spark=ask_spark))  # by the spark-submit that only plays a driver

    check = checks_of(dag.dag_id)["orders: SQL, by Spark"]
    assert (check["family"], check["outcome"]) == ("sql", said[0])
    assert said[1] in check["detail"]


def test_one_connection_can_be_checked_by_itself(run_task: RunTask, validate: Validate, dag: DAG) -> None:
    result = run_task(validate(conn_id="spark_default"))

    assert result.state == "success"
    checks = checks_of(dag.dag_id)
    assert checks["spark_default: connection"]["detail"] == "master local[2,4]"
    assert checks["spark_default: spark-submit"]["outcome"] == "pass"


def test_a_connection_of_another_type_is_of_no_use(
    run_task: RunTask, validate: Validate, connections: Callable[..., None]
) -> None:
    connections(mail={"conn_type": "smtp", "host": "mail"})

    result = run_task(validate(conn_id="mail"))

    assert result.state == "failed"
    assert "conn_type: is smtp (delta or http or iceberg or kafka or postgres is needed here)" in str(
        result.error
    )


ID = "the id of an Airflow connection"
WRONG = [
    ({}, "sink, conn_id: neither is given (give one of them)"),
    ({"sink": SINK, "conn_id": "kafka_test"}, "sink, conn_id: both are given (give one of them)"),
    ({"sink": [SINK]}, "sink: is a list (a Sink, a mapping, or JSON text of one)"),
    ({"sink": 5}, "sink: is a int"),
    ({"sink": {"name": "x", "sorce": "a/b", "target": "a/c d"}}, "sink: sorce: is not known (did you"),
    ({"sink": {"name": "x", "sorce": "a/b", "target": "a/c d"}}, "'c d' is not a valid topic name"),
    ({"conn_id": 5}, f"conn_id: is 5 ({ID})"),
    ({"conn_id": ["a", "b"]}, f"conn_id: is ['a', 'b'] ({ID})"),
    ({"conn_id": " "}, f"conn_id: is ' ' ({ID})"),
    ({"sink": SINK, "spark_conn_id": None}, f"spark_conn_id: is None ({ID})"),
    ({"sink": SINK, "spark_conn_id": ""}, f"spark_conn_id: is '' ({ID})"),
    ({"sink": SINK, "spark_conn_id": {}}, f"spark_conn_id: is {{}} ({ID})"),
    ({"sink": SINK, "ask_spark": "nevr"}, "ask_spark: is 'nevr' (did you mean \"never\"?)"),
    ({"sink": SINK, "ask_spark": True}, "ask_spark: is True (one of auto, always, never)"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=str)
def test_a_wrong_argument_is_named_when_the_dag_is_read(
    validate: Validate, arguments: dict[str, Any], says: str
) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=re.escape(says)):
        validate(**arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"conn_id": "{{ dag_run.conf['nothing'] or '' }}"}, f"conn_id: is '' ({ID})"),
        ({"sink": SINK, "spark_conn_id": "{{ '' }}"}, f"spark_conn_id: is '' ({ID})"),
        ({"sink": "{{ 'no sink' }}"}, "sink: is not JSON"),
        ({"sink": "{{ [1] }}"}, "sink: is a list"),
        ({"sink": {**SINK, "name": "{{ 'a b' }}"}}, "name"),
        ({"conn_id": "{{ 'ab' + 'sent' }}"}, 'connection "absent" does not exist'),
    ],
    ids=str,
)
def test_a_wrong_argument_that_a_template_made_is_named_when_the_task_runs(
    run_task: RunTask, validate: Validate, arguments: dict[str, Any], says: str
) -> None:
    result = run_task(validate(**arguments), conf={"nothing": None})

    assert result.state == "failed"
    assert says in str(result.error)


@pytest.mark.parametrize("kind", ["kafka", "postgres"])
def test_an_address_that_swallows_everything_is_a_line_of_the_report_in_time(
    run_task: RunTask,
    validate: Validate,
    connections: Callable[..., None],
    kind: str,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as black_hole:  # the system accepts, and nobody ever answers
        port = black_hole.getsockname()[1]
        kafka = {"bootstrap.servers": f"127.0.0.1:{port}"}
        postgres = {"host": "127.0.0.1", "port": port, "login": "me", "schema": "db"}
        fields = {"extra": kafka} if kind == "kafka" else {**postgres, "extra": {"connect_timeout": "0"}}
        connections(hole={"conn_type": kind, **fields})
        begun = time.monotonic()
        task = validate(conn_id="hole", timeout_seconds=4)
        result = run_task(task)

    assert result.state == "up_for_retry"
    assert time.monotonic() - begun < 15
    checks_made = checks_of(task.dag_id)
    assert checks_made["hole: options"]["outcome"] == "pass"
    assert checks_made["hole: TCP"]["outcome"] == "pass"
    assert checks_made["hole: protocol"]["outcome"] == "fail"
    assert "did not answer" in checks_made["hole: protocol"]["detail"]


def test_secrets_of_a_connection_stand_neither_in_the_log_nor_in_the_report(
    run_task: RunTask,
    validate: Validate,
    dag: DAG,
    connections: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    canary = f"canary{uuid.uuid4().hex}"
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    extra = {"bootstrap.servers": "127.0.0.1:1", **sasl, "sasl.password": canary}
    connections(kafka_test={"conn_type": "kafka", "password": canary, "extra": extra})

    result = run_task(validate(conn_id="kafka_test"))

    output = capfd.readouterr()
    report = json.dumps(checks_of(dag.dag_id))
    assert result.state == "up_for_retry"
    assert canary not in output.out + output.err + str(result.error) + report


@pytest.mark.parametrize("seconds", [0, -1, "60", True, None])
def test_a_time_that_is_none_is_named_when_the_dag_is_read(validate: Validate, seconds: Any) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="timeout_seconds: is "):
        validate(conn_id="kafka_test", timeout_seconds=seconds)


def test_what_nobody_foresaw_is_a_line_of_the_report_and_shows_nothing(
    run_task: RunTask, validate: Validate, dag: DAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.connectors.kafka.preflight import reach as kafka_reach

    def fail(*_: object) -> None:
        raise RuntimeError("out of the blue, with a secret")

    monkeypatch.setattr(kafka_reach, "reach", fail)

    result = run_task(validate(conn_id="kafka_test"))

    assert result.state == "up_for_retry"
    found = checks_of(dag.dag_id)["kafka_test: further checks"]
    assert (found["outcome"], found["detail"]) == ("fail", "an unforeseen RuntimeError")
