"""Asks Spark whether it takes the SQL of sinks: a process of its own, and nothing left of it.

The same ``spark-submit`` that would submit the job, so that it is the same Spark that judges. It runs on this
machine, bound to the loopback, with none of the worker's settings and a few of its variables: no connection,
no secret, no package from elsewhere. It ends with whoever asks: it is killed with its group, and where that
is too late, as when the asking process was killed, it sees that nobody holds its folder any more.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import airflow_provider_sinks
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.core.query.questions import NoAnswer, QuestionFiles, SqlAnswer, SqlQuestion
from airflow_provider_sinks.drivers.application import application_file
from airflow_provider_sinks.hooks.class_archive import TakenArchive
from airflow_provider_sinks.hooks.spark import JAVA_OPTIONS, taken_archive

_APPLICATION = "sql_check.py"
_PASSED_ON = (
    "HADOOP_HOME",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "TMPDIR",
    "TZ",
)
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""It lives for some seconds: what is compiled thoroughly, or collected in parallel, does not pay any more."""
_MEMORY = "768m"
_NO_JAVA = re.compile(r"JAVA_HOME is not set|java: (?:command )?not found|java: No such file|Java Runtime")
_JAVA_HINT = "Install Java 17 or newer, or let JAVA_HOME name it."
_SPARK_HINT = "Install Spark there and add its bin folder to PATH."
_WORDS_MAX = 300


def ask_spark(
    questions: Sequence[SqlQuestion], binary: str = "spark-submit", *, seconds: float
) -> list[SqlAnswer]:
    """Return what Spark says, in the order of the questions. Never raises for what it finds.

    :param questions: all are answered by one JVM, which takes seconds to start.
    :param binary: the command that submits.
    :param seconds: how long all of it may take.
    """
    program = shutil.which(binary)
    if program is None:
        return [NoAnswer(f"{binary} is not on the PATH of this worker", _SPARK_HINT)] * len(questions)
    with tempfile.TemporaryDirectory(prefix="sinks-sql-") as folder:
        files = QuestionFiles(Path(folder))
        files.ask(questions)
        archive = taken_archive(program, {}, {})
        files.settings.write_text(_settings(archive))
        with held(files.liveness_lock):
            is_in_time = _run(_command(program, files), files, seconds, archive.variables if archive else {})
        return files.answers() or [_silence(files, seconds, is_in_time=is_in_time)] * len(questions)


def _command(program: str, files: QuestionFiles) -> list[str]:
    where = ["--master", "local[1]", "--deploy-mode", "client", "--driver-memory", _MEMORY]
    settings = ["--properties-file", str(files.settings)]
    application = [str(application_file(_APPLICATION)), "--questions", str(files.directory)]
    return [program, *where, *settings, *application]


def _settings(archive: TakenArchive | None) -> str:
    """Return the lines of a properties file, in the place of the user's own."""
    java = f"{_JAVA} {archive.java_option}" if archive else _JAVA
    return "".join(f"{name}={value}\n" for name, value in {**_SETTINGS, JAVA_OPTIONS: java}.items())


def _run(command: Sequence[str], files: QuestionFiles, seconds: float, variables: Mapping[str, str]) -> bool:
    """Run a command to its end and return whether it ended in time.

    :param variables: more of its environment.
    """
    with files.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=files.directory,
            env={**_environment(os.environ), **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:  # only then the number is still its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return True


def _environment(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the few variables that Spark needs, and the Python that has this package."""
    passed = {name: worker[name] for name in _PASSED_ON if name in worker}
    package = str(Path(airflow_provider_sinks.__file__).parents[1])
    return {
        **passed,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": package,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _silence(files: QuestionFiles, seconds: float, *, is_in_time: bool) -> NoAnswer:
    if not is_in_time:
        return NoAnswer(f"Spark did not answer within {seconds:.0f} s", "Give it more time.", retryable=True)
    said = files.log.read_text(errors="replace")
    if _NO_JAVA.search(said):
        return NoAnswer("this worker has no Java, which Spark needs", _JAVA_HINT)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1][:_WORDS_MAX] if lines else "it printed nothing"
    return NoAnswer(f"Spark ended without an answer ({last})")
