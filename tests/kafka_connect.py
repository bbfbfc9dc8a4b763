"""A real Kafka Connect with Debezium's JDBC sink in it: one worker, one connector, on the class path."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import Service, java_program

WORKER = (
    f"org.apache.kafka:connect-runtime:{jars.KAFKA_VERSION}",
    f"org.apache.kafka:connect-json:{jars.KAFKA_VERSION}",
    "io.debezium:debezium-connector-jdbc:3.3.1.Final",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
)
_READY_SECONDS = 240.0
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class JdbcSink:
    """A worker with one connector.

    :param folder: for its files and its log.
    :param servers: of the broker.
    :param postgres: where the connector writes.
    :param options: of the connector, beside where it writes and by whom.
    """

    def __init__(self, folder: Path, servers: str, postgres: Postgres, options: Mapping[str, str]) -> None:
        self._port = free_port()
        self._name = "jdbc-sink"
        worker = {
            "bootstrap.servers": servers,
            "listeners": f"http://{LOCALHOST}:{self._port}",
            "offset.storage.file.filename": str(folder / "offsets"),
            "key.converter": _CONVERTER,
            "value.converter": _CONVERTER,
            "plugin.discovery": "only_scan",
        }
        connector = {
            "name": self._name,
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "connection.url": f"jdbc:postgresql://{postgres.host}:{postgres.port}/{postgres.dbname}",
            "connection.username": postgres.user,
            "connection.password": postgres.password,
            "consumer.override.isolation.level": "read_committed",
            **options,
        }
        folder.mkdir(parents=True)
        for name, settings in (("worker", worker), ("connector", connector)):
            text = "".join(f"{key}={value}\n" for key, value in settings.items())
            (folder / f"{name}.properties").write_text(text)
        classes = ":".join(map(str, jars.resolve(*WORKER)))
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [java_program(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", classes, main]
        self._service = Service(
            "kafka connect", [*command, "worker.properties", "connector.properties"], folder
        )

    def __enter__(self) -> Self:
        self._service.start()
        try:
            self._service.wait_until(self._runs, _READY_SECONDS)
        except BaseException:
            self._service.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._service.stop()

    @property
    def complaint(self) -> str:
        """Why its task failed; empty while it runs."""
        return next(
            (str(one.get("trace", "failed")) for one in self._tasks() if one["state"] == "FAILED"), ""
        )

    def _runs(self) -> bool:
        return accepts(self._port) and any(one["state"] in ("RUNNING", "FAILED") for one in self._tasks())

    def _tasks(self) -> list[dict[str, str]]:
        url = f"http://{LOCALHOST}:{self._port}/connectors/{self._name}/status"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return list(json.load(answer)["tasks"])
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return []
