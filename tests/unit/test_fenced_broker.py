"""A broker that names no broker in its answer: it is asked again, and never ends the process that asks."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.fenced_broker import CLUSTER

_FIRST = """
import sys, threading, time
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import UnavailableError
from tests.fenced_broker import fenced_broker

with fenced_broker() as broker:
    options = KafkaOptions.from_connection_extra({"bootstrap.servers": broker.address}, "k")
    connection = KafkaConnection(options, timeout_seconds=3)
    broker.is_fenced = False
    connection.cluster_id()  # from here on librdkafka knows a broker
    broker.is_fenced = True
"""
_BACK_SOON = """
    threading.Timer(1, setattr, (broker, "is_fenced", False)).start()
    print(connection.cluster_id(), len(connection.listing().topics))
"""
_FOR_GOOD = """
    try:
        connection.cluster_id()
    except UnavailableError as error:
        print(error.primary.replace(broker.address, "it"))
"""
_A_TOPIC = """
    from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
    from airflow_provider_sinks.core.decision.facts import Role

    broker.is_fenced = False
    broker.refusals = {refusals}
    begun = time.monotonic()
    try:
        connection.create_topic(CreateTopic(Role.DATA, "events", 1, 1), 'create topic "events"')
    except UnavailableError as error:
        print(error.primary.replace(broker.address, "it"))
    print(broker.refusals == 0, time.monotonic() - begun < 5)
"""
_UNHEARD = """
    from airflow_provider_sinks.connectors.kafka import connection as module

    module._RENEWED_SECONDS = {renewed_seconds}
    first = connection.admin
    try:
        connection.cluster_id()
    except UnavailableError as error:
        print("no answer")
    broker.is_fenced = False
    print(connection.admin is first, connection.cluster_id())
    connection.close()
"""
_BY_THE_OTHER_CALL = """
    connection.admin.describe_cluster(request_timeout=3).result(5)
"""


def _play(then: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _FIRST + then]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_fenced_broker_is_asked_until_it_is_back() -> None:
    told = _play(_BACK_SOON)

    assert (told.returncode, told.stdout) == (0, f"{CLUSTER} 0\n")


def test_a_broker_that_stays_fenced_is_said_in_time() -> None:
    told = _play(_FOR_GOOD)

    assert (told.returncode, told.stdout) == (0, "Kafka at it could not name the cluster\n")


def test_a_topic_that_a_fenced_broker_would_not_place_is_made_when_it_is_back() -> None:
    told = _play(_A_TOPIC.format(refusals=5))

    assert (told.returncode, told.stdout) == (0, "True True\n"), told.stderr


def test_a_topic_that_is_not_placed_in_time_is_a_matter_for_a_retry() -> None:
    told = _play(_A_TOPIC.format(refusals=10_000))

    assert told.stdout == 'Kafka at it could not create topic "events"\nFalse True\n', told.stderr


@pytest.mark.parametrize(("renewed_seconds", "is_kept"), [(0, False), (3600, True)], ids=["old", "new"])
def test_a_client_without_an_answer_is_replaced_if_it_is_old(renewed_seconds: int, *, is_kept: bool) -> None:
    told = _play(_UNHEARD.format(renewed_seconds=renewed_seconds))

    assert (told.returncode, told.stdout) == (0, f"no answer\n{is_kept} {CLUSTER}\n"), told.stderr


def test_the_call_that_nobody_uses_would_end_the_process() -> None:
    told = _play(_BY_THE_OTHER_CALL)

    assert told.returncode == -signal.SIGABRT
    assert "Assertion `rko_result' failed" in told.stderr
