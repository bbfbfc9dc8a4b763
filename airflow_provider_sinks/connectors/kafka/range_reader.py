"""Reads ranges of a source topic in a task, without Spark: the records are the same, and so is their order.

What Spark's source gives of a range is every record in it that a reader of committed records sees, and so is
this. A range is over when a record at or behind its end came, or the partition's end did: only then has
everything before it come. Nothing else ends it but an error. So a task whose executor is gone has read a
whole range all the same, and its writer is fenced like any other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.kafka.client_failures import reaching_failure
from airflow_provider_sinks.connectors.kafka.fetched import Fetched
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.reading_clients import Place, ReadingClient, keep, taken
from airflow_provider_sinks.core.errors import JobFailedError

_SILENT_SECONDS = 60.0
_FETCH_SECONDS = 0.5
_GONE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001  public in C
_FINAL = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  public in C
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._BAD_MSG,  # noqa: SLF001
        KafkaError.INVALID_MSG,
    }
)
"""What asking on does not change soon; a repeated task may find it changed."""


@dataclass(frozen=True)
class RangeReader:
    """Reads one topic: see :data:`.source.ReadRange`.

    :param options: the connection, with its files read; holds secrets and is never printed.
    :param topic: its name.
    :param reads_on: whether what follows a range is fetched already: the next one is read by this process.
    """

    options: KafkaOptions = field(repr=False)
    topic: str
    reads_on: bool = False

    def __call__(
        self, partition: int, begin: int, end: int, leader_epoch: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the committed records with offsets in [begin, end), in their order.

        :raises JobFailedError: some are gone.
        :raises UnavailableError: the brokers do not give them.
        :raises AuthenticationError: they refuse the credentials.
        """
        place = Place(partition, begin, leader_epoch)
        client = taken(self, place)
        try:
            client.go_to(place)
            for fetched in self._range(client, place, end):
                yield _batch(partition, fetched)
            client.place = replace(place, offset=end)
            if not self.reads_on:
                client.leave()
        except KafkaException as error:
            client.close()
            raise reaching_failure(
                self.options, client.complaints, error, f'give records of "{self.topic}"'
            ) from error
        except BaseException:
            client.close()
            raise
        keep(self, client)

    def _range(self, client: ReadingClient, place: Place, end: int) -> Iterator[Fetched]:
        position, heard_at, newest = place.offset, time.monotonic(), KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001
        while position < end:
            fetched = client.fetch(_FETCH_SECONDS)
            for newest in client.said(fetched):
                self._demand_goes_on(newest, place.partition, position)
            if client.complaints.final is not None or time.monotonic() - heard_at > _SILENT_SECONDS:
                raise KafkaException(client.complaints.final or newest)
            if len(fetched):
                heard_at, position = time.monotonic(), int(fetched.offsets[-1]) + 1
            position = max(position, fetched.end)
            if position > end:
                client.rest, fetched = fetched.behind(end), fetched.before(end)
            if len(fetched):
                yield fetched

    def _demand_goes_on(self, error: KafkaError, partition: int, position: int) -> None:
        """Raise for what librdkafka does not get over by itself."""
        if error.code() in _GONE:
            raise JobFailedError(
                f"records of source {self.topic}/{partition} are gone before they were read",
                f"Offset {position} is not there: {error.str()}.",
                "Retention or a deletion took them. Start again: the sink decides from its progress.",
            )
        if error.code() in _FINAL:
            raise KafkaException(error)


def _batch(partition: int, fetched: Fetched) -> pa.RecordBatch:
    numbers = pa.py_buffer(np.full(len(fetched), partition, np.int32))
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(pa.int32(), len(fetched), [None, numbers]),
            rows.long_array(fetched.offsets),
            fetched.keys,
            fetched.values,
        ],
        names=[rows.PARTITION, rows.OFFSET, rows.RAW_KEY, rows.RAW_VALUE],
    )
