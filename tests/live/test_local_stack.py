"""The parts of the local stack start, answer, survive being killed, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from pyarrow.fs import S3FileSystem

from airflow_provider_sinks.local import ports
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.object_store import REGION, Keys, ObjectStore
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError, Service, session_members
from tests import administrator
from tests.support import TopicFactory


def test_a_killed_broker_comes_back_with_its_records(tmp_path: Path) -> None:
    with KafkaBroker.start(tmp_path / "kafka", auto_create=True) as broker:
        producer = Producer(broker.client_config())
        producer.produce("kept", b"value")
        assert producer.flush(30) == 0
        broker.kill()
        broker.restart()
        consumer = Consumer({**broker.client_config(), "group.id": "reader", "auto.offset.reset": "earliest"})
        consumer.subscribe(["kept"])
        message = consumer.poll(30)
        consumer.close()

    assert message is not None
    assert message.value() == b"value"


def test_the_shared_parts_answer(broker: KafkaBroker, topic: TopicFactory, postgres: Postgres) -> None:
    name = topic("source", partitions=3)
    listed = AdminClient(broker.client_config()).list_topics(timeout=60).topics
    with postgres.connect() as connection:
        row = connection.execute("SELECT current_user").fetchone()

    assert len(listed[name].partitions) == 3
    assert row == (postgres.user,)


@pytest.mark.parametrize("mechanism", [Mechanism.PLAIN, Mechanism.SCRAM_SHA_512])
def test_a_broker_shows_a_user_only_what_acls_allow(mechanism: Mechanism, tmp_path: Path) -> None:
    sasl = Sasl(mechanism, {"alice": 'a "quoted" pass\\word' if mechanism is Mechanism.PLAIN else "secret"})
    with KafkaBroker.start(tmp_path / "kafka", sasl=sasl, authorizer=True) as broker:
        admin = AdminClient(broker.client_config())
        administrator.create_topic(admin, "hidden")
        seen = AdminClient(broker.client_config("alice")).list_topics(timeout=60).topics

    assert dict(seen) == {}


def test_stopping_ends_children_that_left_the_process_group(tmp_path: Path) -> None:
    script = "import os, time; os.fork() or os.setpgid(0, 0); open('ready', 'a').close(); time.sleep(600)"
    service = Service("parent", ["python3", "-c", script], tmp_path)
    service.start()
    service.wait_until((tmp_path / "ready").exists, timeout_seconds=120)
    service.stop()

    assert session_members(service.pid) == []


def test_a_program_that_ends_early_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    service = Service("short", ["sh", "-c", "echo no room left; exit 3"], tmp_path)
    service.start()

    with pytest.raises(LocalServiceError, match=r"short ended with exit code 3\n(.|\n)*no room left"):
        service.wait_until(lambda: False, timeout_seconds=120)


_ASK = """
import sys
from airflow_provider_sinks.local import ports
ports._PORTS = range({first}, {behind})
print(*[ports.free_port() for _ in range(30)], flush=True)
sys.stdin.read()
"""


def test_no_port_is_given_twice_not_even_to_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    few = range(31_900, 32_000)
    monkeypatch.setattr(ports, "_PORTS", few)
    command = [sys.executable, "-c", _ASK.format(first=few.start, behind=few.stop)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = list(map(int, other.stdout.readline().split()))
        ours = [ports.free_port() for _ in range(30)]
        other.communicate()

    assert len({*theirs, *ours}) == 60


def test_the_object_store_takes_its_own_keys_alone_and_keeps_what_it_has(tmp_path: Path) -> None:
    def files(store: ObjectStore, keys: Keys) -> S3FileSystem:
        return S3FileSystem(
            access_key=keys.id, secret_key=keys.secret, endpoint_override=store.url, region=REGION
        )

    with ObjectStore.start(tmp_path / "store", "lake") as store:
        first = store.keys
        with files(store, first).open_output_stream("lake/a/file") as out:
            out.write(b"kept")
        store.change_keys()
        with pytest.raises(OSError, match="AWS Error"):
            files(store, first).get_file_info("lake/a/file")
        with ObjectStore.start(tmp_path / "second", root=store.root) as second:
            for one in (store, second):
                with files(one, one.keys).open_input_file("lake/a/file") as source:
                    assert source.read() == b"kept"
    assert first.secret not in repr(first)
