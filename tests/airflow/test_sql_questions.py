"""How a validation asks Spark, with a ``spark-submit`` that only plays: what it gets, and when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from airflow_provider_sinks.core.query.questions import NoAnswer, SqlAnswer, SqlQuestion
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.operators.validate.sql_questions import ask_spark
from tests.support import until

SPEC = SinkSpec.parse({"name": "orders", "source": "k/in", "target": "k/out"})
ASK = """
from tests.airflow.test_sql_questions import SPEC, SqlQuestion, ask_spark
ask_spark([SqlQuestion(SPEC, {})], seconds=120)
"""
WAITS_FOR_EVER = """
import pathlib, sys, time
from airflow_provider_sinks.core.query.questions import QuestionFiles
from airflow_provider_sinks.streaming import sql_answers
sql_answers.open_session = lambda sink: time.sleep(600)
sql_answers.answer(QuestionFiles(pathlib.Path(sys.argv[-1])))
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a script stands that is the first ``spark-submit`` of the PATH; it leaves its pid in a file."""
    command = tmp_path / "spark-submit"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return command


def play(command: Path, text: str) -> None:
    command.write_text(f'#!/bin/sh\necho $$ > "{command.parent}/pid"\n{text}\n')
    command.chmod(0o755)


def ask(seconds: float = 60) -> SqlAnswer:
    (answer,) = ask_spark([SqlQuestion(SPEC, {})], seconds=seconds)
    return answer


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("echo JAVA_HOME is not set >&2; exit 1", "this worker has no Java"),
        ("echo /x/bin/java: No such file or directory; exit 1", "this worker has no Java"),
        ("echo one; echo out of luck; exit 3", "Spark ended without an answer (out of luck)"),
        ("exit 0", "Spark ended without an answer (it printed nothing)"),
    ],
)
def test_a_spark_that_does_not_answer_says_why(played: Path, said: str, why: str) -> None:
    play(played, said)

    answer = ask()

    assert isinstance(answer, NoAnswer)
    assert why in answer.why


def test_a_worker_without_spark_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert ask() == NoAnswer(
        "spark-submit is not on the PATH of this worker",
        "Install Spark there and add its bin folder to PATH.",
    )


def test_spark_hears_nothing_of_the_worker(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "canary")
    monkeypatch.setenv("PGPASSWORD", "canary")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages of:some:repository")
    play(played, f'env > "{tmp_path}/env"; echo "$@" > "{tmp_path}/args"; cp spark.properties "{tmp_path}"')

    ask()

    heard = (tmp_path / "env").read_text()
    arguments = (tmp_path / "args").read_text()
    assert "canary" not in heard + arguments
    assert "PYSPARK_SUBMIT_ARGS" not in heard
    assert "--master local[1] --deploy-mode client" in arguments
    assert "spark.driver.host=127.0.0.1" in (tmp_path / "spark.properties").read_text()


def test_a_spark_that_takes_too_long_is_ended_with_all_its_children(played: Path, tmp_path: Path) -> None:
    play(played, f'sleep 600 & echo $! > "{tmp_path}/child"; wait')

    answer = ask(seconds=1)

    assert answer == NoAnswer("Spark did not answer within 1 s", "Give it more time.", retryable=True)
    pids = [int((tmp_path / name).read_text()) for name in ("pid", "child")]
    until(lambda: all(map(is_gone, pids)), "both to be gone")


def test_a_spark_ends_when_who_asks_is_killed(played: Path, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS_FOR_EVER)
    play(played, f'exec "{sys.executable}" "{tmp_path}/waits.py" "$@"')
    asking = subprocess.Popen([sys.executable, "-c", ASK], cwd=Path(__file__).parents[2])
    pid_file = tmp_path / "pid"
    until(lambda: pid_file.exists() and bool(pid_file.read_text()), "it to be asked", seconds=60)
    spark = int(pid_file.read_text())
    assert not is_gone(spark)

    asking.send_signal(signal.SIGKILL)
    asking.wait()

    until(lambda: is_gone(spark), "it to be gone", seconds=60)
