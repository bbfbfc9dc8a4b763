"""What a consumer has fetched of one partition, and what reads it without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors.kafka.row_producer import OnError

NOT_AT_END = -1


@dataclass(frozen=True)
class Fetched:
    """Some records of one partition, in the order of their offsets, and what was said beside them.

    :param offsets: 64-bit integers; gaps are records that were compacted away or aborted, and marks.
    :param keys: of bytes; a null is a record without a key.
    :param values: of bytes; a null is a record without a value.
    :param end: the offset at which the partition ends for a reader, where that was reached; else -1.
    :param errors: what librdkafka says in the place of records.
    """

    offsets: np.ndarray
    keys: pa.Array
    values: pa.Array
    end: int = NOT_AT_END
    errors: tuple[KafkaError, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets)

    def before(self, end: int) -> Fetched:
        """Return the records before an offset."""
        count = int(np.searchsorted(self.offsets, end))
        return Fetched(self.offsets[:count], self.keys[:count], self.values[:count])

    def behind(self, end: int) -> Fetched:
        """Return the records at or behind an offset, and where the partition ends."""
        first = int(np.searchsorted(self.offsets, end))
        return Fetched(self.offsets[first:], self.keys[first:], self.values[first:], self.end)


class RecordConsumer(Protocol):
    """A client that reads one partition of a topic at a time; of one thread at a time."""

    def __init__(self, config: Mapping[str, Any], topic: str, on_error: OnError) -> None: ...

    def start(self, partition: int, offset: int) -> None:
        """Begin to fetch a partition.

        :raises KafkaException: it cannot be begun.
        """

    def fetch(self, timeout_seconds: float) -> Fetched:
        """Return what is there by now, waiting a while for the first; calls ``on_error`` in this thread."""

    def stop(self) -> None:
        """Throw away what was fetched, so that another partition may be begun."""

    def close(self) -> None:
        """End the client. Idempotent."""
