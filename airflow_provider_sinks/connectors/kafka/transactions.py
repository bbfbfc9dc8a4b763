"""Transactional producers: their ids, their configuration, and fencing whoever else holds an id.

``init_transactions`` is the fence: it ends an open transaction of the same id, and every older producer of
that id fails from then on. On a fresh producer it takes about 5 ms, or 500 ms when the connection to the
coordinator is not up yet, because librdkafka waits a fixed step before it asks again. So a producer is
warmed up first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from airflow_provider_sinks.connectors.kafka.client_failures import (
    Complaints,
    code_of,
    reaching_failure,
    text_of,
)
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection, client_config
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.record_size import CLIENT_LIMIT, CLIENT_LIMIT_BYTES
from airflow_provider_sinks.connectors.kafka.transactional_ids import transactional_id
from airflow_provider_sinks.core.errors import ConfigurationError, FencedError, Problem, SinkError

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.row_producer import RowProducer

QUEUED_BYTES_MAX = 128 * 1024 * 1024
"""How much may wait for the brokers in one producer."""
_QUEUED_RECORDS_MAX = 500_000
_FENCE_SECONDS = 30.0
_METADATA_SECONDS = 10.0
_WARM_UP_SECONDS = 0.06
_SOCKET_TIMEOUT_MS = 60_000
_JOINT = "."

__all__ = [
    "fence",
    "fence_dead",
    "fencing_failure",
    "producer_config",
    "refusal",
    "transactional_id",
    "warm_up",
]

_DENIED = frozenset(
    {KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)
_OVERTAKEN = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  public in C
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


def producer_config(
    options: KafkaOptions, transactional_id: str, transaction_timeout: timedelta
) -> dict[str, Any]:
    """Return the configuration of a transactional producer; ours wins where exactness hangs on it.

    The partitioner is the one of Java's producer, so that equal keys meet in one partition whoever writes.
    The queue takes :data:`QUEUED_BYTES_MAX` of values, or one record of the largest size, and
    :data:`_QUEUED_RECORDS_MAX`; librdkafka counts neither keys nor what it adds to a record. A producer makes
    topics too, where the broker lets it: one that was deleted under a running sink would come back with other
    partitions, and the commit would succeed. That is turned off; librdkafka lists the switch for consumers
    only, but it works.

    Reports of deliveries that succeeded are turned off: a commit that succeeds says the same, and serving a
    report for each row cost a third of the rows per second.
    """
    timeout_ms = int(transaction_timeout.total_seconds() * 1000)
    given = client_config(options)
    largest_bytes = int(given.get(CLIENT_LIMIT, CLIENT_LIMIT_BYTES))
    socket_timeout_ms = int(given.get("socket.timeout.ms", _SOCKET_TIMEOUT_MS))
    return {
        "linger.ms": "10",
        "compression.type": "lz4",
        **given,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": timeout_ms,
        "socket.timeout.ms": min(socket_timeout_ms, timeout_ms),
        "allow.auto.create.topics": False,
        "delivery.report.only.error": True,
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": _QUEUED_RECORDS_MAX,
        "queue.buffering.max.kbytes": max(QUEUED_BYTES_MAX, largest_bytes) // 1024 + 1,
    }


def warm_up(producer: Producer | RowProducer, seconds: float = _METADATA_SECONDS) -> None:
    """Bring the connections up that ``init_transactions`` needs.

    Asks for all topics and not for one by name, because a broker may create a topic that is asked for.

    :param seconds: how long a broker may take to answer.
    :raises KafkaException: no broker answered.
    """
    producer.list_topics(timeout=seconds)
    producer.poll(_WARM_UP_SECONDS)


def fence(
    options: KafkaOptions,
    transactional_ids: Iterable[str],
    transaction_timeout: timedelta = timedelta(seconds=60),
    parallel: int = 16,
    seconds: float = _FENCE_SECONDS,
) -> None:
    """End every open transaction of these ids, and make every older producer of them fail.

    :param parallel: how many are fenced at the same time.
    :param seconds: how long each of them may take.
    :raises AuthenticationError: the credentials were refused.
    :raises ConfigurationError: an ACL or the broker's limits forbid it.
    :raises UnavailableError: no answer in time.
    """
    ids = list(dict.fromkeys(transactional_ids))
    with KafkaConnection(options, min(seconds, _METADATA_SECONDS)) as connection:
        connection.cluster_id()
    with ThreadPoolExecutor(max(1, min(parallel, len(ids)))) as pool:
        for _ in pool.map(lambda name: _fence_one(options, name, transaction_timeout, seconds), ids):
            pass


def fence_dead(
    options: KafkaOptions, transactional_ids: Iterable[str], transaction_timeout: timedelta
) -> list[str]:
    """Fence ids that nobody can hold any more, and return those that the user may not fence.

    :param transactional_ids: see :class:`~.transactional_ids.IdsToFence`.
    :raises SinkError: for any other reason than a right.
    """
    denied = []
    for name in transactional_ids:
        try:
            fence(options, [name], transaction_timeout)
        except ConfigurationError:
            denied.append(name)
    return denied


def _fence_one(options: KafkaOptions, name: str, transaction_timeout: timedelta, seconds: float) -> None:
    complaints = Complaints()
    config = producer_config(options, name, transaction_timeout)
    producer = Producer({**config, "error_cb": complaints.take})
    try:
        warm_up(producer, min(seconds, _METADATA_SECONDS))
        producer.init_transactions(seconds)
    except KafkaException as error:
        raise fencing_failure(options, complaints, error, name) from error
    finally:
        with contextlib.suppress(KafkaException):  # a producer that failed for good says so once more
            producer.close()


def refusal(options: KafkaOptions, error: KafkaException, name: str) -> ConfigurationError | None:
    """Return our error for a fence that the broker will always refuse; ``None`` for any other failure.

    :param name: the transactional id.
    """
    if code_of(error) == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return ConfigurationError(
            f'transactional id "{name}": the transaction timeout is longer than the broker allows',
            [Problem("transaction_timeout", text_of(error))],
            "Lower transaction_timeout of the sink, or raise transaction.max.timeout.ms of the brokers.",
        ).of(options.conn_id)
    if code_of(error) not in _DENIED:
        return None
    return ConfigurationError(
        f'transactional id "{name}" is denied to the user of connection "{options.conn_id}"',
        [Problem("", text_of(error))],
        f"kafka-acls.sh --bootstrap-server {options.bootstrap_servers} --add "
        "--allow-principal User:<its user> --operation Write --operation Describe "
        f"--transactional-id {name.rpartition(_JOINT)[0]}{_JOINT} --resource-pattern-type prefixed",
    ).of(options.conn_id)


def fencing_failure(
    options: KafkaOptions, complaints: Complaints, error: KafkaException, name: str
) -> SinkError:
    """Return our error for a transactional id that could not be fenced.

    :param name: the transactional id.
    """
    if refused := refusal(options, error, name):
        return refused
    if code_of(error) in _OVERTAKEN:
        return FencedError(
            f'transactional id "{name}" was fenced while it was fencing',
            text_of(error),
            "Another start of the same sink runs at this moment; let one of them win.",
        )
    failure = reaching_failure(options, complaints, error, f'fence transactional id "{name}"')
    hint = f"{failure.hint} On a small cluster see that transaction.state.log.replication.factor fits it."
    return type(failure)(failure.primary, failure.detail, hint).of(*failure.connections)
