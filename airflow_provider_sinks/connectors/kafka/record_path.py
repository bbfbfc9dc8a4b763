"""Which way records take out of librdkafka: see :mod:`.row_path` for the way in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.scattered import gathered

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.fetched import RecordConsumer


def consumer_kind() -> type[RecordConsumer]:
    """Return what reads records: without Python objects, unless the libraries are others than were tested."""
    from airflow_provider_sinks.connectors.kafka import arrow_consumer, object_consumer

    return object_consumer.ObjectConsumer if untested() else arrow_consumer.ArrowConsumer


@functools.cache
def untested() -> str:
    """Return why records are read as Python objects, as a sentence; empty when they are not."""
    try:
        gathered(np.zeros(1, np.uint64), np.zeros(1, np.int64))
    except (pa.ArrowNotImplementedError, AttributeError) as error:
        return f"Arrow {pa.__version__} cannot copy bytes by views: {error}."
    return librdkafka.untested()
