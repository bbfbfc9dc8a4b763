"""Up to where the log of a source partition is still the one that was read (:mod:`.core.progress.log_place`).

Of librdkafka only a consumer asks a broker where a leader epoch ends: before its first fetch, when it was
assigned a place with one. So it is assigned the places, and its first word of each partition is the answer: a
record, or the end of the partition, where all before the place is kept; else that the log was cut, and where.
With ``auto.offset.reset=error`` it never looks for another place by itself.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_sinks.connectors.kafka.client_failures import Complaints, reaching_failure
from airflow_provider_sinks.connectors.kafka.connection import client_config
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.progress.log_place import LogPlace

_SECONDS = 10.0
_POLL_SECONDS = 0.02
_CUT = KafkaError(KafkaError._LOG_TRUNCATION).str()  # noqa: SLF001  public in C
"""How librdkafka says, in the text of another error, that a log does not reach a place."""
_CUT_AT = re.compile(r"broker end offset is (\d+)")
_SETTINGS: Mapping[str, Any] = {
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 1024,  # of more than one record, nothing but the first is looked at
    "queued.min.messages": 1,
}


def kept_log(options: KafkaOptions, topic: str, places: Mapping[int, LogPlace]) -> dict[int, int]:
    """Return up to where partitions have kept what was before a place, of those that have not kept it all.

    A partition that this user may not read, or that begins behind its place, is not among them: there nothing
    can be told. One that knows no leader epoch as old as the place's has kept nothing that can be told.

    :param places: by partition; of a topic that is there.
    :raises UnavailableError: a broker did not answer in time.
    """
    complaints = Complaints()
    consumer = Consumer(
        {
            **client_config(options),
            **_SETTINGS,
            "error_cb": complaints.take,
            "group.id": f"sinks-log-{uuid.uuid4()}",
        }
    )
    try:
        consumer.assign(
            [TopicPartition(topic, p, at.offset, leader_epoch=at.leader_epoch) for p, at in places.items()]
        )
        return _answers(consumer, options, topic, set(places), complaints)
    except KafkaException as error:
        raise reaching_failure(options, complaints, error, _what(topic)) from error
    finally:
        consumer.close()


def _answers(
    consumer: Consumer, options: KafkaOptions, topic: str, asked: set[int], complaints: Complaints
) -> dict[int, int]:
    """Wait for the first word of each partition."""
    found: dict[int, int] = {}
    deadline = time.monotonic() + _SECONDS
    while asked:
        for message in consumer.consume(100, timeout=_POLL_SECONDS):
            partition = message.partition()
            if partition not in asked or not _is_answer(message):
                continue
            asked.discard(partition)
            if (kept := _kept(message)) is not None:
                found[partition] = kept
        if asked and (complaints.final is not None or time.monotonic() > deadline):
            timed_out = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001  public in C
            raise reaching_failure(options, complaints, KafkaException(timed_out), _what(topic))
    return found


def _is_answer(message: Message) -> bool:
    """Return whether asking on brings nothing else; an error that librdkafka gets over is none."""
    error = message.error()
    return error is None or error.code() in _FINAL


def _kept(message: Message) -> int | None:
    """Return up to where the log is the same, where that is before the place."""
    error = message.error()
    if error is None or _CUT not in error.str():
        return None
    told = _CUT_AT.search(error.str())
    return int(told.group(1)) if told else 0


def _what(topic: str) -> str:
    return f'tell whether topic "{topic}" still has the records that were read'


_FINAL = frozenset(
    {
        KafkaError._PARTITION_EOF,  # noqa: SLF001  public in C
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.INVALID_MSG,
    }
)
