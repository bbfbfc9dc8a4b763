"""Spark as the ``pyspark`` wheel brings it: where it is, what it needs for Kafka, and a small real cluster.

with StandaloneCluster.start(folder, workers=2) as cluster:
    subprocess.run(submit_command("--master", cluster.master, "app.py"), env=submit_environment())
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Self

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.processes import LocalServiceError, Service

_READY_SECONDS = 120.0


@cache
def spark_home() -> Path:
    """Return the folder of the Spark that the ``pyspark`` wheel brings."""
    spec = importlib.util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec and spec.origin else None
    if home is None or not (home / "jars").is_dir():
        raise LocalServiceError(
            "there is no Spark in this Python environment",
            "pyspark is missing, or pyspark-client stands in its place: they own the same files.",
            "run `make setup`",
        )
    return home


def kafka_jars() -> tuple[Path, ...]:
    """Return the jars that Spark needs for Kafka beyond its own."""
    return jars.resolve(*jars.SPARK_KAFKA, beside=spark_home() / "jars")


def submit_command(*arguments: str) -> list[str]:
    """Return the command line of spark-submit with the Kafka jars."""
    command = str(spark_home() / "bin" / "spark-submit")
    return [command, "--jars", ",".join(map(str, kafka_jars())), *arguments]


def spark_environment() -> dict[str, str]:
    """Return the variables that choose this Spark, and this Python for the driver and the executors.

    An archive of Spark's classes is kept beside them.
    """
    return {
        "PATH": f"{spark_home() / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOCALHOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "XDG_CACHE_HOME": sys.prefix,
    }


def submit_environment() -> dict[str, str]:
    """Return our environment with what ``spark_environment`` adds."""
    return {**os.environ, **spark_environment()}


class StandaloneCluster:
    """A Spark master and separate workers, each a process of its own, bound to this machine."""

    def __init__(self, folder: Path, workers: int, cores: int, memory: str) -> None:
        self._port, self._ui_port = free_port(), free_port()
        self._environment = submit_environment()
        self._master = self._service(folder, "master", self._address(self._port, self._ui_port))
        sizes = ["--cores", str(cores), "--memory", memory]
        self._workers = [
            self._service(folder, f"worker {number}", [*self._worker(folder, number), *sizes, self.master])
            for number in range(1, workers + 1)
        ]

    @classmethod
    def start(cls, folder: Path, *, workers: int = 2, cores: int = 2, memory: str = "1g") -> Self:
        """Start a cluster and return when every worker is registered.

        :param cores: cores that each worker offers.
        :param memory: memory that each worker offers, as Spark writes it.
        """
        cluster = cls(folder, workers, cores, memory)
        try:
            cluster._start()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    @property
    def master(self) -> str:
        """The URL for ``--master``."""
        return f"spark://{LOCALHOST}:{self._port}"

    @property
    def logs(self) -> tuple[Path, ...]:
        """The log files, the master's first."""
        return (self._master.log, *(worker.log for worker in self._workers))

    @property
    def sessions(self) -> tuple[int, ...]:
        """The sessions of the workers; their executors are in them."""
        return tuple(worker.pid for worker in self._workers)

    def kill_worker(self, number: int) -> None:
        """End one worker and its executors at once; the first is 1."""
        self._workers[number - 1].kill()

    def kill(self) -> None:
        """End master, workers and executors at once, as a power cut would."""
        for service in (self._master, *self._workers):
            service.kill()

    def stop(self) -> None:
        """End the workers with their executors, then the master."""
        for service in (*self._workers, self._master):
            service.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._master.start()
        self._master.wait_until(lambda: accepts(self._port), _READY_SECONDS)
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            worker.wait_until(partial(_is_registered, worker), _READY_SECONDS)

    def _service(self, folder: Path, name: str, arguments: Sequence[str]) -> Service:
        kind = name.split(maxsplit=1)[0]
        main = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
        command = [str(spark_home() / "bin" / "spark-class"), main, *arguments]
        return Service(f"spark {name}", command, folder, env=self._environment)

    def _worker(self, folder: Path, number: int) -> list[str]:
        return [*self._address(free_port(), free_port()), "--work-dir", str(folder / f"work {number}")]

    @staticmethod
    def _address(port: int, ui_port: int) -> list[str]:
        return ["--host", LOCALHOST, "--port", str(port), "--webui-port", str(ui_port)]


def _is_registered(worker: Service) -> bool:
    return "Successfully registered with master" in worker.log.read_text(encoding="utf-8", errors="replace")
