"""Each argument of the operator wrong in turn: said when the DAG file is read, or else when the task runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.fakes import SINK, FakeSpark

if TYPE_CHECKING:
    from tests.airflow_side import RunTask, Submit

WRONG = [
    pytest.param({"sink": {"name": "x"}}, "sink: source: ", id="sink-without-source"),
    pytest.param({"sink": {**SINK, "sorce": "k/t"}}, "sink: sorce: ", id="sink-with-a-misspelt-key"),
    pytest.param({"sink": {**SINK, "target": "k/not a topic"}}, "sink: target", id="sink-with-a-bad-topic"),
    pytest.param({"sink": 3}, "sink: is a int", id="sink-number"),
    pytest.param({"sink": None}, "sink: is a NoneType", id="sink-none"),
    pytest.param({"sink": "name: x"}, "sink: is not JSON", id="sink-yaml-text"),
    pytest.param({"spark_conn_id": ""}, "spark_conn_id: is ''", id="spark-conn-id-empty"),
    pytest.param({"spark_conn_id": 5}, "spark_conn_id: is 5", id="spark-conn-id-number"),
    pytest.param({"spark_conn_id": None}, "spark_conn_id: is None", id="spark-conn-id-none"),
    pytest.param({"accept": 7}, "accept: is a int", id="accept-number"),
    pytest.param({"accept": ["a"]}, "accept: is a list", id="accept-list"),
    pytest.param({"deferrable": "yes"}, "deferrable: is 'yes'", id="deferrable-text"),
    pytest.param({"follow_connections": None}, "follow_connections: is None", id="follow-none"),
    pytest.param({"follow_connections": "no"}, "follow_connections: is 'no'", id="follow-text"),
    pytest.param({"own_sinks": "clicks"}, "own_sinks: is 'clicks'", id="own-text"),
    pytest.param({"poll_interval": 0}, "poll_interval: is 0", id="poll-zero"),
    pytest.param({"poll_interval": -3}, "poll_interval: is -3", id="poll-negative"),
    pytest.param({"poll_interval": float("nan")}, "poll_interval: is nan", id="poll-nan"),
    pytest.param({"poll_interval": "10"}, "poll_interval: is '10'", id="poll-text"),
    pytest.param({"poll_interval": True}, "poll_interval: is True", id="poll-flag"),
    pytest.param({"poll_interval": 1e9}, "poll_interval: is 1000000000.0", id="poll-years"),
    pytest.param({"status_uri": "s3a://a:b@c/d"}, "status_uri: holds a login", id="status-uri-with-login"),
    pytest.param({"status_uri": 5}, "status_uri: is a int", id="status-uri-number"),
    pytest.param({"retries": -3}, "retries: is -3 (a whole number from 0", id="retries-negative"),
    pytest.param({"deploy_mode": "custer"}, "deploy_mode: is 'custer'", id="deploy-mode-misspelt"),
    pytest.param(
        {"deferrable": True, "deploy_mode": "client"},
        "deferrable: cannot be true in client mode",
        id="deferrable-in-client-mode",
    ),
    pytest.param({"conf": "spark.a=b"}, "conf: is a str", id="conf-text"),
    pytest.param({"conf": {"spark.master": "local"}}, "conf: spark.master", id="conf-master"),
    pytest.param(
        {"conf": {"spark.submit.deployMode": "cluster"}},
        "conf: spark.submit.deployMode",
        id="conf-deploy-mode",
    ),
    pytest.param({"conf": {"spark.submit.pyFiles": "a"}}, "conf: spark.submit.pyFiles", id="conf-py-files"),
    pytest.param({"env_vars": "A=1"}, "env_vars: is a str", id="env-vars-text"),
    pytest.param(
        {"env_vars": {"AIRFLOW__CORE__FERNET_KEY": "k"}},
        "env_vars: AIRFLOW__CORE__FERNET_KEY: is Airflow's own",
        id="env-vars-of-airflow",
    ),
    pytest.param(
        {"conf": {"spark.speculation": True}},
        "conf: spark.speculation: is set to True",
        id="conf-speculation",
    ),
    pytest.param({"jars": ["a.jar"]}, "jars: is a list", id="jars-list"),
    pytest.param({"packages": ["a:b:1"]}, "packages: is a list", id="packages-list"),
    pytest.param({"py_files": ["a.py"]}, "py_files: is a list", id="py-files-list"),
    pytest.param({"files": 1}, "files: is a int", id="files-number"),
    pytest.param({"application": "a.py"}, "application: it runs", id="application"),
]


OWNED_CONF = {
    "spark.master": "spark://master:7077",
    "spark.submit.deployMode": "cluster",
    "spark.submit.pyFiles": "own.py",
    "spark.python.daemon.module": "pyspark.daemon",
    "spark.speculation": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.python.worker.reuse": "false",
    "spark.sql.variable.substitute": "true",
    "spark.sql.runSQLOnFiles": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
}
"""Each Spark setting that a sink owns, with a value of somebody else."""


@pytest.mark.parametrize(("name", "value"), OWNED_CONF.items(), ids=OWNED_CONF)
def test_a_spark_setting_that_a_sink_owns_is_refused_when_the_dag_file_is_read(
    submit: Submit, name: str, value: str
) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as caught:
        submit(conf={name: value, "spark.executor.cores": "2"})

    assert [problem.where for problem in caught.value.problems] == [f"conf: {name}"]


def test_all_spark_settings_that_a_sink_owns_are_tried() -> None:
    from airflow_provider_sinks.core.spec.spark_conf import OWNED_SETTINGS
    from airflow_provider_sinks.operators.submit.arguments import _OWNED_CONF

    assert set(OWNED_CONF) == {*OWNED_SETTINGS, *_OWNED_CONF}


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_a_literal_is_judged_when_the_dag_file_is_read(
    submit: Submit, arguments: dict[str, Any], words: str
) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as caught:
        submit(**arguments)

    assert words in str(caught.value)


def test_an_argument_that_nobody_knows_is_named(submit: Submit) -> None:
    with pytest.raises(TypeError, match="jar"):
        submit(jar="a.jar")


def test_everything_that_is_wrong_is_said_at_once(submit: Submit) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as caught:
        submit(poll_interval=0, accept=1, sink={"name": "x"})

    names = [problem.where.partition(":")[0] for problem in caught.value.problems]
    assert names == ["sink", "sink", "accept", "poll_interval"]


@pytest.mark.parametrize(
    ("arguments", "conf", "words"),
    [
        pytest.param({"sink": "{{ dag_run.conf['v'] }}"}, "name: x", "sink: is not JSON", id="sink"),
        pytest.param(
            {"sink": {**SINK, "target": "k/{{ dag_run.conf['v'] }}"}}, "a b", "sink: target", id="sink-part"
        ),
        pytest.param(
            {"spark_conn_id": "{{ dag_run.conf['v'] }}"}, "", "spark_conn_id: is ''", id="spark-conn-id-empty"
        ),
        pytest.param(
            {"spark_conn_id": "{{ dag_run.conf['v'] }}"},
            "nowhere",
            'connection "nowhere" does not exist',
            id="spark-conn-id-unknown",
        ),
        pytest.param({"conf": "{{ dag_run.conf['v'] }}"}, "a=b", "conf: is a str", id="conf"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_template_is_judged_when_the_task_runs(
    run_task: RunTask, submit: Submit, arguments: dict[str, Any], conf: str, words: str
) -> None:
    result = run_task(submit(**arguments), conf={"v": conf})

    assert result.state == "failed"
    assert words in str(result.error)


@pytest.mark.parametrize("mode", [None, "client"])
def test_client_mode_is_not_deferred_and_the_reason_is_said(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None], mode: str | None
) -> None:
    extra = {"deploy-mode": mode} if mode else {}
    connections(spark_default={"conn_type": "spark", "host": "spark://master:7077", "extra": extra})

    result = run_task(submit(deferrable=True))

    assert result.state == "failed"
    assert "deferrable: cannot be true in client mode: the driver is a process" in str(result.error)
    assert not (spark.folder / "seen.json").exists()


def test_airflows_default_for_deferring_does_not_break_client_mode(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")

    assert run_task(submit()).state == "success"
    assert spark.seen["argv"]


def test_the_output_of_another_task_is_not_judged_before_it_is_there(submit: Submit) -> None:
    from airflow.sdk import task

    @task
    def a_sink() -> dict[str, Any]:
        return dict(SINK)

    assert submit(sink=a_sink()).sink is not None
