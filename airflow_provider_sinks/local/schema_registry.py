"""A real schema registry for tests and the demo: Apicurio, which speaks Confluent's API, in memory.

    with SchemaRegistry.start(folder) as registry:
        SchemaRegistryClient({"url": registry.url})

It knows nothing after it ended, and any user may do anything.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.processes import Service, java_program

_READY_SECONDS = 180.0
_API = "/apis/ccompat/v7"
_MAIN = "io.quarkus.runner.GeneratedMain"


class SchemaRegistry:
    """One registry with its own folder and port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = free_port()
        self._service = Service("schema registry", self._command(), folder)

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Start a registry and return when it answers, after some ten seconds.

        :param folder: for its log.
        """
        registry = cls(folder)
        registry.restart()
        return registry

    @property
    def url(self) -> str:
        """Where clients of Confluent's registry connect."""
        return f"http://{LOCALHOST}:{self._port}{_API}"

    @property
    def log(self) -> Path:
        """The registry's log file."""
        return self._service.log

    def restart(self) -> None:
        """Start it on its old port, after ``stop``; it has forgotten everything."""
        self._service.start_until(self._answers, _READY_SECONDS)

    def stop(self) -> None:
        """End the registry."""
        self._service.stop()

    def pause(self) -> None:
        """Freeze the registry: connections stay open, nothing answers."""
        self._service.freeze()

    def resume(self) -> None:
        """Let a frozen registry go on."""
        self._service.thaw()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        home = jars.unpacked(jars.SCHEMA_REGISTRY, "all")
        settings = {
            "quarkus.http.host": LOCALHOST,
            "quarkus.http.port": str(self._port),
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": "sql",  # of a database in its own memory
        }
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", *(f"-D{k}={v}" for k, v in settings.items())]
        return [java_program(), *options, "-cp", f"{home}/*:{home}/lib/*", _MAIN]

    def _answers(self) -> bool:
        if not accepts(self._port):
            return False
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:  # noqa: S310  our own
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False
