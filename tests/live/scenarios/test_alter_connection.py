"""A connection that is altered under three running sinks, in a real Airflow, with a broker on two listeners.

The stories are told one after the other, about the same three sinks: options that one of them cannot run on,
refused and then rolled back; and new ones, which all move to. One sink has nothing to do most of the time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl, Tls
from tests import administrator
from tests.certificates import Authority
from tests.faults.driver import QUICK_START
from tests.live.alter_story import AlterDag, SharedSink

SHARED = f"kafka_shared_{uuid.uuid4().hex[:6]}"
PASSWORDS = {user: f"{user} canary {uuid.uuid4().hex}" for user in ("old", "new", "limited")}
ALL = AclOperation.ALL, AclPermissionType.ALLOW


@dataclass(frozen=True)
class World:
    """Three sinks that run on one connection, and what alters it."""

    airflow: AirflowStack
    broker: KafkaBroker
    authority: Authority
    alter: AlterDag
    sinks: tuple[SharedSink, ...]
    runs: tuple[DagRun, ...]

    def options(self) -> dict[str, str]:
        """Return the visible options of the connection."""
        import json

        extra = self.airflow.call("GET", f"connections/{SHARED}")["extra"]
        return dict(json.loads(extra))

    def before(self) -> list[str]:
        """Return the ids of all connections that hold old options."""
        found = self.airflow.call("GET", "connections", limit=100)["connections"]
        return [row["connection_id"] for row in found if row["connection_id"].endswith(".before")]

    def launches(self) -> list[int]:
        """Return how often each sink was launched."""
        return [sink.newest_launch for sink in self.sinks]

    def wait_committing(self) -> None:
        """Return when each sink's newest launch has committed rows that were fed just now."""
        for sink in self.sinks:
            sink.feed(5)
        for sink, fed in [(sink, sink.fed) for sink in self.sinks]:
            sink.wait_until(partial(sink.has_committed, fed), "the newest launch to commit")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[KafkaBroker]:
    """A broker with an old listener, and a new one inside TLS; each demands a user."""
    pair = authority.sign()
    with KafkaBroker.start(
        tmp_path_factory.mktemp("two listeners"),
        sasl=Sasl(Mechanism.SCRAM_SHA_512, PASSWORDS),
        tls=Tls(pair.certificate, pair.key),
        authorizer=True,
        extra={"super.users": "User:ANONYMOUS;User:old;User:new"},
    ) as running:
        yield running


@pytest.fixture(scope="module")
def world(airflow: AirflowStack, broker: KafkaBroker, authority: Authority) -> Iterator[World]:
    """The three sinks, running."""
    airflow.add_connection("spark_of_alterations", "spark", host="local[1,4]")
    airflow.add_connection(SHARED, "kafka", extra=broker.client_config("old"))
    for user in ("new", "limited"):
        airflow.call("POST", "variables", {"key": f"sinks_secret_{user}", "value": PASSWORDS[user]})
    alter = AlterDag.write(airflow, f"alter_{SHARED}")
    jars = ",".join(map(str, spark.kafka_jars()))
    conf = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.ui.enabled": "false",
    }
    arguments = {"spark_conn_id": "spark_of_alterations", "jars": jars, "conf": conf}
    sinks = tuple(SharedSink(airflow, broker, name, arguments, shared=SHARED) for name in ("a", "b", "idle"))
    for sink in sinks:
        sink.prepare(20)
    grant_limited(sinks)
    started = tuple(sink.start() for sink in sinks)
    for sink in sinks:
        sink.wait_running(1)
    with ExitStack() as fed:
        for sink in sinks[:2]:
            fed.enter_context(sink.fed_all_the_time())
        yield World(airflow, broker, authority, alter, sinks, started)
    for sink, run in zip(sinks, started, strict=True):
        end(sink, run)


def end(sink: SharedSink, run: DagRun) -> None:
    """Return when a sink has no driver any more."""
    if sink.airflow.run_state(run) == "running":
        sink.mark(run, "failed")
    sink.wait_no_driver()


def grant_limited(sinks: tuple[SharedSink, ...]) -> None:
    """Let the user ``limited`` do all but write with the transactional ids of the second sink."""
    any_name = [
        (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL),
        (ResourceType.GROUP, "*", ResourcePatternType.LITERAL),
    ]
    ids = [
        (ResourceType.TRANSACTIONAL_ID, f"sinks.{sink.name}.", ResourcePatternType.PREFIXED)
        for sink in (sinks[0], sinks[2])
    ]
    acls = [AclBinding(*what, "User:limited", "*", *ALL) for what in (*any_name, *ids)]
    admin = AdminClient({**sinks[0].client})
    administrator.grant(admin, acls)


LIMITED = (
    f"ALTER CONNECTION {SHARED} SET (sasl.username = limited, sasl.password = SECRET sinks_secret_limited)"
)


def test_a_sink_that_could_not_run_is_found_before_anything_is_changed(world: World) -> None:
    world.airflow.call(
        "PATCH",
        f"connections/{SHARED}",
        {"connection_id": SHARED, "conn_type": "kafka", "description": "a new description changes nothing"},
    )

    run = world.alter.start(LIMITED)
    world.airflow.wait_for_run(run, 300)

    log = world.airflow.task_log(run, "alter")
    assert f'Write on transactional ids "sinks.{world.sinks[1].name}.*": denied' in log
    assert f'sink "{world.sinks[1].name}" could not run on its new options' in log
    assert world.options()["sasl.username"] == "old"
    assert world.before() == []
    assert world.launches() == [1, 1, 1]


def test_without_validation_it_is_rolled_back_and_all_run_on_the_old_options(world: World) -> None:
    result = world.alter.result(world.alter.start(f"{LIMITED} WITH (VALIDATE = false)"))

    name = world.sinks[1].name
    assert result["end"] == "undone", result["log"]
    assert f'sink "{name}": did not come on the new options' in result["log"]
    assert f'transactional id "sinks.{name}.' in result["log"]
    assert {found["came"] for found in result["on_old"].values()} == {"back"}, result["on_old"]
    assert world.options()["sasl.username"] == "old"
    assert world.before() == []
    world.wait_committing()


def test_all_three_move_to_the_new_listener_though_the_task_is_killed_and_the_old_one_can_be_closed(
    world: World,
) -> None:
    launches = world.launches()
    statement = (
        f"ALTER CONNECTION {SHARED} SET (bootstrap.servers = '{world.broker.tls_bootstrap}', "
        f"security.protocol = sasl_ssl, ssl.ca.pem = '{world.authority.pem}', "
        "sasl.username = new, sasl.password = SECRET sinks_secret_new)"
    )

    result = world.alter.result(world.alter.start(statement, kill=(2, "after")))
    world.wait_committing()
    moved = world.launches()
    close_old_listener(world.broker)
    world.wait_committing()

    assert (result["end"], result["tries"]) == ("altered", 2), result["log"]
    assert {found["came"] for found in result["on_new"].values()} == {"back"}
    assert world.options()["sasl.username"] == "new"
    assert world.before() == []
    assert all(now > then for now, then in zip(moved, launches, strict=True))


def close_old_listener(broker: KafkaBroker) -> None:
    """Start the broker again without the listener that the sinks had come from."""
    file = broker.folder / "server.properties"
    broker.stop()
    lines = [without(line, "SECURED://") for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    broker.restart()


def without(line: str, scheme: str) -> str:
    """Return a line of properties without the listener of a scheme."""
    name, _, value = line.partition("=")
    if not name.endswith("listeners"):
        return line
    return f"{name}={','.join(part for part in value.split(',') if not part.startswith(scheme))}"


def test_no_secret_stands_in_a_log_or_in_airflows_answers(world: World) -> None:
    text = "".join(
        path.read_text(errors="replace") for path in world.airflow.home.rglob("*.log") if path.is_file()
    )
    shown = str(world.airflow.call("GET", "connections", limit=100))
    xcoms = str(world.airflow.call("GET", "dags/~/dagRuns/~/taskInstances/~/xcomEntries", limit=100))

    for password in PASSWORDS.values():
        assert password not in text
        assert password not in shown + xcoms


@pytest.fixture(scope="module")
def killed(airflow: AirflowStack, world: World) -> dict[tuple[int, str], DagRun]:
    """Alterations of connections that no sink uses, each killed at another write; all at the same time."""
    begun = {}
    for number in (1, 2, 3):
        for moment in ("before", "after"):
            conn_id = f"kafka_killed_{number}_{moment}"
            airflow.add_connection(conn_id, "kafka", extra={"bootstrap.servers": "old:1", "client.id": "old"})
            changes = "SET (bootstrap.servers 'new:1'), DROP (client.id) WITH (VALIDATE false)"
            statement = f"ALTER CONNECTION {conn_id} {changes}"
            begun[number, moment] = world.alter.start(statement, kill=(number, moment))
    return begun


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_killed_at_each_step_and_tried_again_it_is_wholly_new(
    airflow: AirflowStack, world: World, killed: dict[tuple[int, str], DagRun], number: int, moment: str
) -> None:
    result = world.alter.result(killed[number, moment])

    row = airflow.call("GET", f"connections/kafka_killed_{number}_{moment}")
    assert result["end"] == ("unchanged" if (number, moment) == (3, "after") else "altered"), result["log"]
    assert result["tries"] == 2
    assert row["extra"] == '{"bootstrap.servers": "new:1"}'
    assert f"kafka_killed_{number}_{moment}.before" not in world.before()


def test_over_all_that_no_row_is_missing_and_none_is_doubled(world: World) -> None:
    for sink, run in zip(world.sinks, world.runs, strict=True):
        end(sink, run)

    for sink in world.sinks:
        sink.demand_exact(rows_min=50)
