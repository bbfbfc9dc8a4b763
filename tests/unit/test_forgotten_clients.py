"""A Kafka client that nobody closed, and that the garbage collector finds in the client's own thread."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions

_NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
_CLIENTS = 20
_STORY = f"""
import gc, sys, threading
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from confluent_kafka.admin import AdminClient

options = KafkaOptions.from_connection_extra({_NOBODY!r}, "k")
collected = threading.Event()

def ask_and_forget():
    held = AdminClient(options.librdkafka()) if sys.argv[1] == "bare" else KafkaConnection(options)
    circle = [held]
    circle.append(circle)
    answer = getattr(held, "admin", held).describe_cluster(request_timeout=0.3)
    answer.add_done_callback(collect)  # in the client's thread

def collect(_):
    if gc.collect():
        collected.set()

gc.disable()
for _ in range({_CLIENTS}):
    ask_and_forget()
assert collected.wait(120)
"""


def _play(held: str) -> int:
    command = [sys.executable, "-c", _STORY, held]
    return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode


def test_a_forgotten_connection_never_ends_the_process() -> None:
    assert _play("connection") == 0


def test_a_bare_client_would() -> None:
    assert _play("bare") == -signal.SIGABRT


def test_a_closed_connection_is_closed_once_and_asks_no_more() -> None:
    connection = KafkaConnection(KafkaOptions.from_connection_extra(_NOBODY, "k"), timeout_seconds=1)
    connection.close()
    connection.close()

    with pytest.raises(RuntimeError):
        connection.cluster_id()
