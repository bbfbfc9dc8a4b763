"""Flink, exactly-once: SQL into a Kafka sink whose transactions end with checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow_provider_sinks.local.postgres import Postgres
from tests.bench.peers.arm import CopyingArm, Running, Work
from tests.bench.peers.artifacts import flink_command
from tests.bench.peers.spark_arms import jdbc_options
from tests.bench.peers.workloads import USERS_TABLE, Enrich

_PARALLELISM = 2
_SHORTEST = timedelta(milliseconds=100)


@dataclass(frozen=True)
class FlinkArm(CopyingArm):
    """Flink in one JVM, with two tasks at once as Spark has.

    :param checkpoints: how often; ``None`` for as many rows per commit as the others.
    """

    checkpoints: timedelta | None

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        every = max(self.checkpoints or work.commit_every, _SHORTEST)
        work.folder.mkdir(parents=True, exist_ok=True)
        settings, script = work.folder / "settings.properties", work.folder / "script.sql"
        _write_private(settings, "".join(f"{name}: {value}\n" for name, value in _settings(every).items()))
        _write_private(script, ";\n".join(_script(work)))
        command = [*flink_command(), str(settings), str(script)]
        return Running([work.service("flink", command)], notes=[f"checkpoints {every.total_seconds():.2g} s"])


def _write_private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)


def _settings(every: timedelta) -> dict[str, str]:
    return {
        "parallelism.default": str(_PARALLELISM),
        "execution.checkpointing.interval": f"{every / timedelta(milliseconds=1):.0f}ms",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "restart-strategy.type": "none",
        "pipeline.object-reuse": "true",
        "pipeline.name": "copy",
    }


def _script(work: Work) -> list[str]:
    if not isinstance(work.workload, Enrich):
        table = "(k BYTES, v BYTES)"
        insert = "INSERT INTO target SELECT k, v FROM source"
        return [_source(work, table, "raw"), _target(work, table, "raw"), insert]
    if work.users is None:
        raise ValueError("the query joins a table, and no server has it")
    columns = "k BYTES, id BIGINT, userid STRING, category INT, price DOUBLE, note STRING, seen AS PROCTIME()"
    output = "(k BYTES, id BIGINT, userid STRING, region STRING, price DOUBLE)"
    query = Enrich.query("source", "users FOR SYSTEM_TIME AS OF s.seen").replace("SELECT ", "SELECT s.k, ", 1)
    return [
        _source(work, f"({columns})", "json"),
        _target(work, output, "json"),
        _users(work.users),
        f"INSERT INTO target {query}",
    ]


def _source(work: Work, columns: str, form: str) -> str:
    options = {
        **_topic(work, work.source, form),
        "properties.group.id": work.target,
        "properties.isolation.level": "read_committed",
        "scan.startup.mode": "earliest-offset",
    }
    if not work.endless:
        options["scan.bounded.mode"] = "latest-offset"
    return f"CREATE TABLE source {columns} WITH ({_listed(options)})"


def _target(work: Work, columns: str, form: str) -> str:
    options = {
        **_topic(work, work.target, form),
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": work.target,
        "properties.acks": "all",
        "properties.transaction.timeout.ms": "600000",
    }
    return f"CREATE TABLE target {columns} WITH ({_listed(options)})"


def _topic(work: Work, topic: str, form: str) -> dict[str, str]:
    return {
        "connector": "kafka",
        "properties.bootstrap.servers": work.bootstrap,
        "topic": topic,
        "key.format": "raw",
        "key.fields": "k",
        "value.format": form,
        "value.fields-include": "EXCEPT_KEY",
    }


def _users(server: Postgres) -> str:
    """Return the lookup table, kept in memory once a user was asked for."""
    jdbc = jdbc_options(server)
    options = {
        "connector": "jdbc",
        "url": jdbc["url"],
        "username": jdbc["user"],
        "password": jdbc["password"],
        "table-name": USERS_TABLE,
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.max-rows": "100000",
    }
    return f"CREATE TABLE users (userid STRING, region STRING) WITH ({_listed(options)})"


def _listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
