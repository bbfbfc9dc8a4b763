from __future__ import annotations

import importlib
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.ports import LOCALHOST
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, Coordinates, Harness
from tests.contract.wire import Line, Loss, Wire
from tests.redis_server import RedisServer

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        "part": pa.string(),
        "at": pa.string(),
        "what": pa.string(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)


class RedisWire(Wire):
    """It is cut in front of the script that commits, or in front of its answer.

    :param commit: what a client sends to run that script.
    """

    def __init__(self, server: tuple[str, int], commit: bytes) -> None:
        super().__init__(server)
        self._commit = commit

    def _ask(self, line: Line) -> None:
        while data := line.client.recv(1 << 16):
            if self._commit in data and self._loss is Loss.COMMIT:
                return
            line.is_silent |= self._commit in data and self._loss is Loss.ANSWER
            line.server.sendall(data)

    def _answer(self, line: Line) -> None:
        while data := line.server.recv(1 << 16):
            if line.is_silent:
                return
            line.client.sendall(data)


class RedisHarness(Harness):
    """Keys of its own, reached over a wire that can be cut; the package must be found meanwhile.

    :param target: more options of the target.
    """

    def __init__(self, server: RedisServer, **target: Any) -> None:
        super().__init__()
        self.begin = uuid.uuid4().hex[:12]
        self.direct: Any = server.client()  # its answers are text
        scripts = importlib.import_module("sinks_connector_redis.scripts")
        sha = self.direct.script_load(scripts.COMMIT)
        self.wire = RedisWire((LOCALHOST, server.port), sha.encode())
        self._target = target
        self.fields = server.connection(port=self.wire.port)
        self.said: list[str] = []

    def spec(self, sink: str = SINK) -> SinkSpec:
        target = {"stream": f"{self.begin}:{sink}", "progress": f"{self.begin}:progress", **self._target}
        return SinkSpec.parse(
            {
                "name": sink,
                "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "format": "bytes"}},
                "target": {"redis": {"connection": "redis", **target}},
                "dead_letter": {"stream": f"{self.begin}:{sink}:dead"},
            }
        )

    def connector(self, sink: str = SINK) -> SinkConnector:
        connections = ResolvedConnections({"redis": self.fields.options()})
        return connect(self.spec(sink), connections, say=self.said.append)

    def creations(self, sink: str = SINK) -> Sequence[Creation]:
        return list(self.spec(sink).creations().values())

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        found = [
            {
                rows.PARTITION: partition,
                rows.OFFSET: at,
                rows.ERROR: "no JSON" if at in bad else None,
                "part": str(partition),
                "at": str(at),
                rows.RAW_VALUE: b"as it came",
            }
            for at in offsets
        ]
        return pa.RecordBatch.from_pylist(found, SCHEMA)

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return sorted((int(row["part"]), int(row["at"])) for row in self.read(f"{self.begin}:{sink}"))

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        found = self.read(f"{self.begin}:{sink}:dead")
        return sorted((int(row["source_partition"]), int(row["source_offset"])) for row in found)

    def read(self, stream: str) -> list[dict[str, str]]:
        """Return the fields of every entry, as any reader of the stream gets them."""
        return [fields for _, fields in self.direct.xrange(stream)]

    def all_keys(self) -> set[str]:
        """Return what is there of this harness."""
        return {key.removeprefix(f"{self.begin}:") for key in self.direct.keys(f"{self.begin}:*")}

    def losing_answers(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.ANSWER)

    def losing_commits(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.COMMIT)

    def kill(self, writer: EpochWriter) -> None:
        pool = writer._client.connection_pool  # type: ignore[attr-defined]
        for connection in pool._available_connections:
            if connection._sock is not None:
                self.wire.cut_client(connection._sock.getsockname()[1])

    def close(self) -> None:
        self.wire.close()
        for key in self.direct.keys(f"{self.begin}:*"):
            self.direct.delete(key)
        self.direct.close()
