"""Debezium's JDBC sink on a worker of Kafka Connect: somebody else who reads what sinks write, into Postgres.

It takes each message by the schema that the message itself or a registry has of it, and knows the changes
of Debezium's envelope and the types that Debezium names.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError, Service, java_program

_CONNECT = [f"org.apache.kafka:{name}:{jars.KAFKA_VERSION}" for name in ("connect-runtime", "connect-json")]
_LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"
_CONVERTER = "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_READY_SECONDS = 120.0
_HTTP_SECONDS = 10.0


def avro(registry_url: str) -> dict[str, str]:
    """Return the settings of a connector by which it reads Avro, keys and values, by a registry's schemas."""
    converter = {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": registry_url,
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
    }
    return {
        f"{part}.converter{name}": value for part in ("key", "value") for name, value in converter.items()
    }


class JdbcSink:
    """A running worker; each topic gets a connector of its own, which goes on until the worker ends.

    :param folder: for its log and its offsets.
    """

    def __init__(self, folder: Path, broker: KafkaBroker, postgres: Postgres) -> None:
        self._postgres = postgres
        self._port = free_port()
        folder.mkdir(parents=True)
        settings = {
            "bootstrap.servers": broker.admin_bootstrap,
            "listeners": f"http://{LOCALHOST}:{self._port}",
            "offset.storage.file.filename": folder / "offsets",
            "offset.flush.interval.ms": 500,
            "key.converter": _JSON,
            "value.converter": _JSON,
            "plugin.path": jars.unpacked(jars.DEBEZIUM_JDBC, "plugin"),
            "plugin.discovery": "only_scan",
            "consumer.auto.offset.reset": "earliest",
            "consumer.isolation.level": "read_committed",
        }
        file = folder / "worker.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        path = ":".join(map(str, jars.resolve(*_CONNECT, _LOGGING, _CONVERTER)))
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [java_program(), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", path, main, str(file)]
        self._service = Service("connect", command, folder)

    def __enter__(self) -> Self:
        self._service.start()
        self._service.wait_until(lambda: accepts(self._port) and self._ask("/") is not None, _READY_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._service.stop()

    def read(self, topic: str, table: str, options: Mapping[str, str]) -> None:
        """Begin to read a topic into a table, which is made from what is read.

        :param options: more settings of the connector.
        """
        fields = self._postgres.connection_fields
        place = f"{fields['host']}:{fields['port']}/{fields['schema']}"
        config = {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": topic,
            "connection.url": f"jdbc:postgresql://{place}",
            "connection.username": str(fields["login"]),
            "connection.password": str(fields["password"]),
            "collection.name.format": table,
            "schema.evolution": "basic",
            **options,
        }
        self._ask(f"/connectors/{topic}/config", config)

    def demand_running(self, topic: str) -> None:
        """Raise what has gone wrong with the reading of a topic, if anything has."""
        status = self._ask(f"/connectors/{topic}/status") or {}
        for part in (status.get("connector", {}), *status.get("tasks", ())):
            if part.get("state") == "FAILED":
                raise LocalServiceError("the JDBC sink failed", part.get("trace", "")[:3000])

    def _ask(self, what: str, body: Mapping[str, str] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        url, kind = f"http://{LOCALHOST}:{self._port}{what}", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data, kind, method="PUT" if data else "GET")
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_SECONDS) as answer:  # noqa: S310  likewise
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in {404, 409, 503}:  # not yet
                return None
            raise LocalServiceError("Connect refuses", error.read().decode()[:3000]) from None
