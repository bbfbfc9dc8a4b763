"""A broker that demands a user: who gets in, what a user may see, and where the password must not stand."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import session_members
from tests import administrator
from tests.acls import grant, least
from tests.faults import topics
from tests.faults.driver import Driver
from tests.live.shared_driver import SharedDriver
from tests.live.stage import Stage

_CANARY = f"canary{uuid.uuid4().hex}"
_PASSWORD = f"""a"b\\c'{_CANARY}; d="\\"""
_TEXT = {"from_": {"format": "text"}}
_LIMITED = "User:limited"


@pytest.fixture(scope="module")
def guarded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with SASL/PLAIN and ACLs, which do not bind the user ``sinks``."""
    sasl = Sasl(Mechanism.PLAIN, {"sinks": _PASSWORD, "limited": "limited"})
    rights = {"super.users": "User:ANONYMOUS;User:sinks"}
    folder = tmp_path_factory.mktemp("guarded kafka")
    with KafkaBroker.start(folder, sasl=sasl, authorizer=True, extra=rights) as running:
        yield running


@pytest.fixture
def guarded(
    guarded_broker: KafkaBroker, postgres: Postgres, shared_driver: SharedDriver, tmp_path: Path
) -> Iterator[Stage]:
    """The place for sinks on the guarded broker."""
    stage = Stage(guarded_broker, postgres, shared_driver, tmp_path / "with a space", user="sinks")
    yield stage
    stage.close()


def test_plain_end_to_end_and_passwords_stand_nowhere(guarded: Stage) -> None:
    with guarded.postgres.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS canaries (id text, name text)")
    source = guarded.source("canary", {0: [("k", "v0"), ("k", "v1")]})
    sink = guarded.sink(
        "canary",
        source,
        **_TEXT,
        lookups={"names": {"postgres": {"connection": "pg", "table": "public.canaries"}}},
        query="SELECT value, count(*) AS n, min(1 / (length(value) - 4)) AS fails_at_four_letters "
        "FROM source LEFT JOIN names ON id = value GROUP BY value",
        to={"format": "json", "key": "value"},
        trigger={"every": "100ms"},
    )
    events = sink.folder / "events"
    events.mkdir(parents=True)
    sink.conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }

    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 2}))
    processes, scratch = _processes(driver), _files(driver._scratch)
    guarded.produce(source, [(0, "k", "four")])
    assert driver.wait() == ExitCode.FAILED

    secrets = (_CANARY.encode(), guarded.postgres.password.encode())
    kept = {**_files(sink.folder), **_topics(guarded, sink.progress, sink.out)}
    assert b"StreamingRelationV2" in b"".join(_files(events).values())
    assert "DIVIDE_BY_ZERO" in driver.log
    assert any("status.json" in name for name in kept)
    assert any("offsets" in name for name in kept)
    found = {**processes, **scratch, **kept}
    assert [name for name, content in found.items() if any(secret in content for secret in secrets)] == []
    assert sorted(record.key or b"" for record in guarded.read(sink.out)) == [b"v0", b"v1"]


def test_wrong_password_is_final_and_not_repeated_to_the_reader(guarded: Stage) -> None:
    sink = guarded.sink("wrong", guarded.source("wrong", {0: [("k", "v")]}), **_TEXT)
    extra = {**guarded.broker.client_config("sinks"), "sasl.password": f"not{_CANARY}"}
    sink.connections = ResolvedConnections({"kafka": KafkaOptions.from_connection_extra(extra, "kafka")})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.kind == "AuthenticationError"
    assert status.error.primary == f"Kafka at {guarded.broker.bootstrap} refused the credentials"
    assert 'user and password of connection "kafka"' in status.error.hint
    assert _CANARY not in status.to_json()


def test_topic_hidden_by_an_acl_is_unknown_and_never_missing(guarded: Stage) -> None:
    source = guarded.source("hidden", {0: [("k", "v0")]})
    sink = guarded.sink("hidden", source, **_TEXT)
    sink.run()
    before = guarded.topics()
    guarded.user = "limited"
    sink.connections = guarded.connections()
    for topic in (source, sink.progress):
        _allow(guarded, ResourceType.TOPIC, topic, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)

    status = sink.fail(ExitCode.UNAVAILABLE)

    assert status.error is not None
    assert f'data topic "{sink.out}" could not be seen (TOPIC_AUTHORIZATION_FAILED' in str(status.error)
    assert f"--operation Describe --topic {sink.out}" in status.error.hint
    assert guarded.topics() == before


def test_rights_that_a_sink_needs_and_no_more(guarded: Stage) -> None:
    source = guarded.source("rights", {0: [("k", "v0"), ("k", "{")]})
    guarded.user = "limited"
    sink = guarded.sink("rights", source, **_TEXT, dead_letter=f"{source}-dead")
    grant(guarded.broker, "limited", least(sink.parsed, "kafka", [source]))

    sink.run()
    guarded.produce(source, [(0, "k", "v2")])
    sink.run()

    assert [record.value for record in guarded.read(sink.out)] == [b"v0", b"{", b"v2"]


@pytest.mark.parametrize("has_dead_letters", [True, False], ids=["set aside", "stops"])
def test_a_time_that_a_topic_with_hidden_limits_refuses(guarded: Stage, has_dead_letters: bool) -> None:
    hours = (0, 24, -24, 48)
    rows = [json.dumps({"at": _spelled(time.time() + 3_600 * hour)}) for hour in hours]
    source, to = guarded.source("times", {0: [("k", row) for row in rows]}), {"timestamp": {"column": "at"}}
    guarded.user, dead = "limited", f"{source}-dead"
    aside = {"dead_letter": dead} if has_dead_letters else {}
    sink = guarded.sink("times", source, from_={"schema": "at timestamp"}, to=to, **aside)
    grant(guarded.broker, "limited", least(sink.parsed, "kafka", [source]))

    if has_dead_letters:
        status = sink.run()
        assert (status.rows, status.dead_total) == (2, 2)
        assert [letter.value for letter in guarded.read(dead)] == [rows[1].encode(), rows[3].encode()]
        return
    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f'topic "{sink.out}" does not take the timestamp of a row' in status.error.primary
    assert f"--operation DescribeConfigs --topic {sink.out}" in status.error.hint
    assert guarded.read(sink.out) == []


@pytest.mark.parametrize("has_dead_letters", [True, False], ids=["set aside", "stops"])
def test_rows_without_a_key_for_a_compacted_topic_with_hidden_settings(
    guarded: Stage, has_dead_letters: bool
) -> None:
    source = guarded.source("keyless", {0: [("k", '{"id": "a"}'), ("k", "{}"), ("k", '{"id": "b"}')]})
    guarded.user, dead = "limited", f"{source}-dead"
    aside = {"dead_letter": dead} if has_dead_letters else {}
    sink = guarded.sink("keyless", source, from_={"schema": "id string"}, to={"key": "id"}, **aside)
    guarded.create_topic(sink.out, 1, **{"cleanup.policy": "compact"})
    grant(guarded.broker, "limited", least(sink.parsed, "kafka", [source, sink.out]))

    if has_dead_letters:
        status = sink.run()
        assert (status.rows, status.dead_total) == (2, 1)
        assert [letter.value for letter in guarded.read(dead)] == [b"{}"]
        return
    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f'topic "{sink.out}" takes no row of sink' in status.error.primary
    assert f"--operation DescribeConfigs --topic {sink.out}" in status.error.hint
    assert guarded.read(sink.out) == []


def _spelled(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _allow(stage: Stage, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Grant something to the limited user."""
    allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
    acls = [AclBinding(kind, name, literal, _LIMITED, "*", operation, allow) for operation in operations]
    admin = AdminClient(stage.broker.client_config())
    administrator.grant(admin, acls)


def _processes(driver: Driver) -> dict[str, bytes]:
    """Return what everyone on the machine, or in the family, can see of a driver's processes."""
    found = {}
    for pid in session_members(driver.service.pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # Python workers come and go
            process = psutil.Process(pid)
            found[f"argv of {pid}"] = "\0".join(process.cmdline()).encode()
            found[f"environment of {pid}"] = "\0".join(process.environ().values()).encode()
    assert any(b"SparkSubmit" in argv for argv in found.values())
    return found


def _files(folder: Path) -> dict[str, bytes]:
    found = {}
    for place, _, names in os.walk(folder):  # it passes over a folder that goes meanwhile; rglob does not
        for path in (Path(place, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # Spark tidies up while we look
                if path.is_file() and not path.is_symlink():
                    found[str(path)] = path.read_bytes()
    return found


def _topics(stage: Stage, *names: str) -> dict[str, bytes]:
    records = {name: topics.read(stage.client, name, topics.UNCOMMITTED) for name in names}
    return {
        f"topic {name}": b"".join((r.key or b"") + (r.value or b"") for r in found)
        for name, found in records.items()
    }
