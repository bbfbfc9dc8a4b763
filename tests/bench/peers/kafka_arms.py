"""The arms of Kafka's own: Streams, MirrorMaker 2 on Connect, and the tools that show the limits."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.processes import LocalServiceError
from tests.bench.peers.arm import CopyingArm, Kind, Running, Work
from tests.bench.peers.artifacts import connect_command, streams_command, tool_command

_THREADS = 2
_AS_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_ASKED_EVERY_SECONDS = 3.0
_READY_SECONDS = 120.0
_HTTP_SECONDS = 10
_TUNED = {
    "transaction.boundary": "interval",
    "transaction.boundary.interval.ms": "5000",
    "source.consumer.max.poll.records": "5000",
    "producer.override.linger.ms": "20",
    "producer.override.batch.size": "262144",
}


@dataclass(frozen=True)
class StreamsArm(CopyingArm):
    """Kafka Streams with ``exactly_once_v2``.

    :param commits: how often.
    """

    commits: timedelta

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        settings = {
            "application.id": work.target,
            "bootstrap.servers": work.bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "commit.interval.ms": f"{self.commits / timedelta(milliseconds=1):.0f}",
            "num.stream.threads": _THREADS,
            "state.dir": work.folder / "state",
            "replication.factor": 1,
            "consumer.auto.offset.reset": "earliest",
        }
        file = _properties(work.folder / "settings.properties", settings)
        command = [*streams_command(), str(file), work.source, work.target]
        return Running([work.service("streams", command)], ends=False)


@dataclass(frozen=True)
class MirrorArm(CopyingArm):
    """MirrorMaker 2, exactly-once, on a Connect worker. It names its topic itself.

    :param tuned: transactions of 5 s and large batches, in place of a transaction per poll.
    """

    tuned: bool

    def target(self, work: Work) -> str:
        """See :class:`.arm.Arm`: the alias of the source cluster stands before the name of the topic."""
        return f"{work.target}.{work.source}"

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        name, port = f"mirror-{work.target}".replace(".", "-"), free_port()
        file = _properties(work.folder / "worker.properties", _worker(work, name, port))
        service = work.service("connect", [*connect_command(), str(file)])
        url = f"http://{LOCALHOST}:{port}/connectors/{name}"
        return _Mirror([service], ends=False, url=url, config=self._connector(work))

    def _connector(self, work: Work) -> dict[str, str]:
        off = ("sync.topic.configs", "sync.topic.acls", "emit.offset-syncs", "emit.checkpoints")
        return {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": str(work.partitions),
            "source.cluster.alias": work.target,
            "target.cluster.alias": "there",
            "source.cluster.bootstrap.servers": work.bootstrap,
            "target.cluster.bootstrap.servers": work.bootstrap,
            "topics": work.source,
            "replication.factor": "1",
            **{f"{name}.enabled": "false" for name in (*off, "sync.group.offsets", "refresh.topics")},
            "exactly.once.support": "required",
            "source.consumer.isolation.level": "read_committed",
            "consumer.isolation.level": "read_committed",
            "source.consumer.auto.offset.reset": "earliest",
            **{f"{part}.converter": _AS_BYTES for part in ("key", "value", "header")},
            **(_TUNED if self.tuned else {}),
        }


def _worker(work: Work, name: str, port: int) -> dict[str, object]:
    topics = ("offset", "config", "status")
    return {
        "bootstrap.servers": work.bootstrap,
        "group.id": name,
        "key.converter": _AS_BYTES,
        "value.converter": _AS_BYTES,
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        **{f"{topic}.storage.topic": f"{name}-{topic}" for topic in topics},
        **{f"{topic}.storage.replication.factor": 1 for topic in topics},
        "exactly.once.source.support": "enabled",
        "listeners": f"http://{LOCALHOST}:{port}",
        "plugin.discovery": "service_load",
    }


@dataclass
class _Mirror(Running):
    """Makes the connector as soon as the worker answers, and sees failed tasks: the worker outlives them."""

    url: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    _made: bool = False
    _asked: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """See :class:`.arm.Running`."""
        if not self._made:
            self._made = self._make()
            if not self._made and time.monotonic() - self._began > _READY_SECONDS:
                raise self.services[0].failure(f"Connect took no connector within {_READY_SECONDS:.0f} s")
        elif time.monotonic() - self._asked > _ASKED_EVERY_SECONDS:
            self._asked = time.monotonic()
            self._check()

    def _make(self) -> bool:
        try:
            self._ask("config", self.config)
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise LocalServiceError(
                    "Connect refused the connector", error.read().decode()[:1500]
                ) from None
            return False
        except OSError:
            return False
        return True

    def _check(self) -> None:
        try:
            status = self._ask("status")
        except OSError:
            return
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                raise LocalServiceError("a part of the connector failed", part.get("trace", "")[:1500])

    def _ask(self, what: str, body: Mapping[str, str] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310  a server of ours
            f"{self.url}/{what}", data, kind, method="PUT" if data else "GET"
        )
        with urllib.request.urlopen(request, timeout=_HTTP_SECONDS) as answer:  # noqa: S310  likewise
            return json.load(answer)


@dataclass(frozen=True)
class ProducerLimit(CopyingArm):
    """Kafka's ``ProducerPerformance``: rows of its own, in transactions of a second."""

    @property
    def kind(self) -> Kind:
        """See :class:`.arm.Arm`."""
        return Kind.WRITES_ONLY

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        options = {
            "topic": work.target,
            "num-records": work.rows,
            "record-size": work.workload.record_bytes,
            "throughput": -1,
            "transactional-id": work.target,
            "transaction-duration-ms": 1000,
        }
        producer = [f"bootstrap.servers={work.bootstrap}", "acks=all", "compression.type=none"]
        command = [*_tool("ProducerPerformance", options), "--producer-props", *producer]
        return Running([work.service("producer", command)])


@dataclass(frozen=True)
class ConsumerLimit(CopyingArm):
    """Kafka's ``ConsumerPerformance``, ``read_committed``."""

    @property
    def kind(self) -> Kind:
        """See :class:`.arm.Arm`."""
        return Kind.READS_ONLY

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        options = {
            "bootstrap-server": work.bootstrap,
            "topic": work.source,
            "messages": work.rows,
            "timeout": 60_000,
            "group": work.target,
            "consumer.config": _properties(work.folder / "consumer.properties", settings),
        }
        service = work.service("consumer", _tool("ConsumerPerformance", options))
        return _Consumer([service], notes=["by its own account, joining the group left out"])


class _Consumer(Running):
    """Reads what the tool prints: a line of figures, the last one the rows per second."""

    def rate(self) -> float | None:
        """See :class:`.arm.Running`."""
        return consumed_per_second(self.services[0].log.read_text().splitlines())


def consumed_per_second(lines: Sequence[str]) -> float | None:
    """Return the last figure of the last line that is all figures, as ``ConsumerPerformance`` prints them."""
    cells = [line.split(",") for line in lines if line[:2] == "20" and line.count(",") == 9]
    return float(cells[-1][-1]) if cells else None


def _tool(name: str, options: Mapping[str, object]) -> list[str]:
    given = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    return [*tool_command(name), *given]


def _properties(file: Path, settings: Mapping[str, object]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file
