# ruff: noqa: SLF001  the provider has no public seam for its output, its process and its master
"""One run of ``spark-submit`` by the Spark provider's hook, with the driver's output in a file of its own.

The provider writes each line of Spark into the task log; a stream never stops writing. Here the lines go to
the launch directory, the task log keeps its one line per epoch, and the driver runs in a process group of its
own, so that ending it ends the JVM and its Python process together.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.hooks.class_archive import ClassArchive, TakenArchive
from airflow_provider_sinks.hooks.connections import spark_connection

LOG4J2_FILE = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
_COMPILERS = ("Tiered", "-Xint", "-Xcomp", "JVMCI")
"""How options of a JVM begin, or go on, that say how it compiles."""
_YARN_TAGS = "spark.yarn.tags"
_YARN_ATTEMPTS = "spark.yarn.maxAppAttempts"
_HISTORY_SERVER = "history-server"
_PYTHONS = ("spark.pyspark.python", "spark.pyspark.driver.python", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_AIRFLOWS_OWN = ("AIRFLOW_", "_AIRFLOW_", "__AIRFLOW_")
"""How the names of Airflow's own variables begin: settings with its keys, connections, Variables, what a task
gets of its supervisor."""
_LOG_LIMIT_BYTES = 64 * 1024 * 1024
_LAST_LINES = 40
_POLL_SECONDS = 0.05


def with_our_settings(
    conf: Mapping[str, Any],
    env_vars: Mapping[str, Any],
    master: str,
    log4j2_file: str = LOG4J2_FILE.as_uri(),
    archive: TakenArchive | None = None,
    *,
    has_rows: bool = True,
) -> dict[str, Any]:
    """Return Spark settings with ours added where the user has none: log levels, a Python, how Java starts.

    On this machine the driver runs with the Python of Airflow, which has what a driver needs; the ``python3``
    of a worker's ``PATH`` often has not. A JVM that only plans epochs never gets back what its second
    compiler takes.

    :param conf: the user's Spark settings.
    :param env_vars: environment variables that the user gives to ``spark-submit``.
    :param master: the Spark master.
    :param log4j2_file: where the driver finds its logging settings.
    :param archive: of Spark's classes, where the driver runs on this machine.
    :param has_rows: whether rows may pass through the JVM of the driver.
    """
    ours = dict(conf)
    java_options = str(conf.get(JAVA_OPTIONS) or "")
    if "log4j" not in java_options:
        ours[JAVA_OPTIONS] = f"{java_options} -Dlog4j2.configurationFile={log4j2_file}".strip()
    if archive is not None:
        ours[JAVA_OPTIONS] = f"{ours[JAVA_OPTIONS]} {archive.java_option}"
    if not has_rows and not any(word in java_options for word in _COMPILERS):
        ours[JAVA_OPTIONS] = f"{ours[JAVA_OPTIONS]} {_FIRST_COMPILER}"
    chosen = [name for name in _PYTHONS if name in conf or name in env_vars or name in os.environ]
    if master.startswith("local") and not chosen:
        ours["spark.pyspark.python"] = sys.executable
    return ours


def taken_archive(binary: str, env_vars: Mapping[str, Any], conf: Mapping[str, Any]) -> TakenArchive | None:
    """Return how a driver on this machine takes the archive of Spark's classes; ``None`` if there is none.

    :param binary: the command that submits.
    :param env_vars: environment variables that the user gives to it.
    :param conf: the user's Spark settings.
    """
    found = ClassArchive.of(binary, {**driver_environment(os.environ), **env_vars})
    return None if found is None else found.taken(str(conf.get(JAVA_OPTIONS) or ""))


def driver_environment(worker: Mapping[str, str]) -> dict[str, str]:
    """Return what a driver gets of a worker's environment: all but what is Airflow's own.

    A worker knows Airflow's keys and tokens; a driver runs a user's query, and needs none of them.

    :param worker: the environment of the worker.
    """
    return {name: value for name, value in worker.items() if not is_airflows_own(name)}


def is_airflows_own(variable: str) -> bool:
    """Tell whether an environment variable is Airflow's own."""
    return variable.upper().startswith(_AIRFLOWS_OWN)


def with_tags(conf: Mapping[str, Any], tags: Iterable[str]) -> dict[str, Any]:
    """Return Spark settings with which YARN finds the application, and starts its driver once.

    Trying again is Airflow's business: it knows the witness, and whether the sink shall run at all.

    :param tags: added to the user's own.
    """
    given = str(conf.get(_YARN_TAGS) or "")
    return {_YARN_ATTEMPTS: "1", **conf, _YARN_TAGS: ",".join(filter(None, [given, *tags]))}


def joined(ours: Iterable[Path], users: str | None) -> str | None:
    """Return files as one argument of ``spark-submit``, ours first; ``None`` when there are none."""
    return ",".join(filter(None, [*map(str, ours), users])) or None


@dataclass(frozen=True)
class SparkTarget:
    """Where a Spark connection runs things, as the provider reads it.

    :param binary: the name of the command that submits, which must be on the worker's ``PATH``.
    :param drives_on_cluster: whether the driver would run on the cluster and not on the worker.
    :param history_server: the address of Spark's history server, if the connection's extra names one.
    """

    master: str
    binary: str
    drives_on_cluster: bool
    history_server: str = ""

    @classmethod
    def of_hook(cls, hook: SparkSubmitHook) -> SparkTarget:
        """Read it from a hook that has resolved its connection."""
        settings = hook._connection
        return cls(settings["master"], settings["spark_binary"], settings["deploy_mode"] == "cluster")

    @classmethod
    def of_connection(cls, conn_id: str, deploy_mode: str | None = None) -> SparkTarget:
        """Read it from an Airflow connection, and check it.

        :param deploy_mode: what the user says beside the connection, which then counts.
        :raises ConfigurationError: when there is no such connection, or a sink cannot run there.
        """
        found = spark_connection(conn_id)  # the provider would take YARN for one that does not exist
        if (found.host or "").startswith("k8s://"):
            mode = deploy_mode or found.extra_dejson.get("deploy-mode")
            cls(str(found.host), "", mode == "cluster").require_place_for_driver(conn_id)
        try:
            target = cls.of_hook(SparkSubmitHook(conn_id=conn_id, deploy_mode=deploy_mode))
        except NameError:  # the provider's own check stumbles over what it checks for
            problem = Problem("", "Kubernetes needs the package apache-airflow-providers-cncf-kubernetes")
            raise ConfigurationError(f'connection "{conn_id}" is not valid for Spark', [problem]) from None
        except (ValueError, RuntimeError) as error:
            problem = Problem("", str(error))
            raise ConfigurationError(f'connection "{conn_id}" is not valid for Spark', [problem]) from None
        target.require_place_for_driver(conn_id)
        return replace(target, history_server=str(found.extra_dejson.get(_HISTORY_SERVER) or ""))

    def require_place_for_driver(self, where: str) -> None:
        """Refuse a cluster that cannot run the driver of a sink.

        :param where: who asks for it, for the message.
        """
        kind = self.master.split(":", 1)[0]
        if self.drives_on_cluster and kind != "yarn":
            why = _NO_DRIVER_ON.get(kind, "only a cluster has a cluster mode")
            problem = Problem(
                "deploy mode",
                f"is cluster, but the driver of a sink cannot run on {kind}: {why}",
                "client, or a YARN cluster",
            )
            raise ConfigurationError(f"{where} cannot run a sink", [problem])


_NO_DRIVER_ON = {
    "spark": "Spark's own master takes no Python application there",
    "k8s": "this version cannot find it again there after its worker was lost",
}


class DriverProcess:
    """The process of ``spark-submit`` in client mode, and with it the driver.

    :param hook: the provider's hook, before it submits; its output and its process group change hands.
    :param log: the file that takes what the process prints.
    :param started: told the pid as soon as there is one.
    """

    def __init__(self, hook: SparkSubmitHook, log: Path, started: Callable[[int], None]) -> None:
        self._hook = hook
        self._log = log
        self._started = started
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._called_off = False
        own_group = functools.partial(
            hook.submit,
            start_new_session=True,
            env=self._take_environment(hook),
            encoding="utf-8",
            errors="replace",
        )
        hook.submit = own_group  # type: ignore[method-assign]
        hook._process_spark_submit_log = self._take_output  # type: ignore[method-assign,assignment]

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal, or ``None`` before the end."""
        process = self._hook._submit_sp
        return None if process is None else process.returncode

    @property
    def last_lines(self) -> str:
        """The last lines that were printed, with values of secret-like keys masked as the provider does."""
        return "\n".join(self._hook._mask_cmd([line]) for line in self._last_lines)

    def call_off(self) -> None:
        """End the process as soon as it starts, if it has not started yet."""
        self._called_off = True

    def ended_within(self, seconds: float) -> bool:
        """Wait until the process has ended or the time is over, and say whether it has ended.

        Made for signal handlers: it takes no lock that the interrupted thread may hold.
        """
        process = self._hook._submit_sp
        return holds_within(
            lambda: process is None or process.poll() is not None, seconds, pause_seconds=_POLL_SECONDS
        )

    def end(self, grace_seconds: float) -> None:
        """End the whole process group: SIGTERM, and after the grace SIGKILL; nothing if it has ended."""
        if self.ended_within(0):
            return
        group = self._hook._submit_sp.pid  # type: ignore[union-attr]
        _signal(group, signal.SIGTERM)
        self.ended_within(grace_seconds)
        _signal(group, signal.SIGKILL)  # the JVM may be gone and its Python process not
        self.ended_within(grace_seconds)

    @staticmethod
    def _take_environment(hook: SparkSubmitHook) -> dict[str, str]:
        """Return the environment of the process; the user's variables join it when the provider has them.

        The provider itself would add them to the whole environment of the worker.
        """
        environment = driver_environment(os.environ)
        build = hook._build_spark_submit_command

        def build_and_take(application: str) -> list[str]:
            command = build(application)
            environment.update(hook._env or {})
            hook._env = None
            return command

        hook._build_spark_submit_command = build_and_take  # type: ignore[method-assign]
        return environment

    def _take_output(self, lines: Iterator[str]) -> None:
        if self._called_off:  # in the moment in which the process was made
            self.end(0)
        self._started(self._hook._submit_sp.pid)  # type: ignore[union-attr]
        self._hook._spark_exit_code = 0  # on Kubernetes the provider looks here, in client mode too
        log = self._log.open("a", encoding="utf-8", buffering=1)
        try:
            for line in lines:
                self._last_lines.append(line.rstrip("\n"))
                log.write(line)
                if log.tell() > _LOG_LIMIT_BYTES:
                    log.close()
                    self._log.replace(self._log.with_suffix(".log.1"))
                    log = self._log.open("a", encoding="utf-8", buffering=1)
        finally:
            log.close()
            self._hook._submit_sp.stdout.close()  # type: ignore[union-attr]  # the provider leaves it open


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
