"""A handle of librdkafka's by its C API: its configuration, its topics, and what it says."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.row_producer import OnError


def new_handle(kind: int, config: Mapping[str, Any], on_error: Any, on_delivery: Any | None = None) -> int:
    """Return a new client's address.

    :param kind: :data:`.librdkafka.PRODUCER` or ``CONSUMER``.
    :param config: librdkafka's names and values.
    :param on_error: as :func:`error_callback` made it; kept by whoever calls, like the next.
    :param on_delivery: likewise, of a producer.
    :raises KafkaException: librdkafka does not take the configuration.
    """
    c, said = librdkafka.library(), ctypes.create_string_buffer(librdkafka.TEXT_BYTES)
    conf = c.rd_kafka_conf_new()
    c.rd_kafka_conf_set_error_cb(conf, on_error)
    if on_delivery is not None:
        c.rd_kafka_conf_set_dr_msg_cb(conf, on_delivery)
    for name, value in config.items():
        given = str(value).lower() if isinstance(value, bool) else str(value)
        if c.rd_kafka_conf_set(conf, name.encode(), given.encode(), said, len(said)):
            c.rd_kafka_conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text(said.value)))  # noqa: SLF001
    handle: int | None = c.rd_kafka_new(kind, conf, said, len(said))
    if not handle:
        code = c.rd_kafka_last_error()
        c.rd_kafka_conf_destroy(conf)
        raise KafkaException(KafkaError(code, text(said.value)))
    return handle


def new_topic(handle: int, name: str) -> int:
    """Return the address of a topic of a client; it must be destroyed before the client."""
    c = librdkafka.library()
    made: int | None = c.rd_kafka_topic_new(handle, name.encode(), None)
    if not made:
        raise KafkaException(KafkaError(c.rd_kafka_last_error()))
    return made


def error_callback(on_error: OnError) -> Any:
    """Return what librdkafka calls with its errors, in the thread that polls."""

    def take(handle: int, code: int, reason: bytes | None, _: int | None) -> None:
        if code != KafkaError._FATAL:  # noqa: SLF001  public in C
            on_error(KafkaError(code, text(reason)))
            return
        said = ctypes.create_string_buffer(librdkafka.TEXT_BYTES)
        cause = librdkafka.library().rd_kafka_fatal_error(handle, said, len(said))
        on_error(KafkaError(cause, text(said.value), fatal=True))

    return librdkafka.ErrorCallback(take)


def text(said: bytes | None) -> str:
    """Return what librdkafka said."""
    return (said or b"").decode("utf-8", "replace")


def ms(seconds: float) -> int:
    """Return a time as librdkafka takes it."""
    return int(seconds * 1000)
