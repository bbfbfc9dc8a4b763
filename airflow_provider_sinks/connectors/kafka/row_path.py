"""Which way rows take into librdkafka, and what is said about it.

The fastest is a call for a whole batch, from Arrow's buffers. That call has no headers and no times of
messages: then each row has a call of its own, still from the buffers. With a version of librdkafka that was
not tested rows become Python objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.row_producer import ProducerKind


def producer_kind() -> ProducerKind:
    """Return what makes the producers of rows; the client library is loaded now."""
    from airflow_provider_sinks.connectors.kafka import arrow_producer, object_producer

    return object_producer.ObjectProducer if librdkafka.untested() else arrow_producer.ArrowProducer


def told(target: KafkaTarget) -> str:
    """Return why rows do not take the fastest way, for a person; empty when they do."""
    if why := librdkafka.untested():
        return f"rows go to Kafka as Python objects, which takes more processor time: {why}"
    if target.headers is not None or target.has_time:
        why = "librdkafka takes neither headers nor timestamps with a batch."
        return f"rows go to Kafka by a call each, which takes more processor time: {why}"
    return ""
