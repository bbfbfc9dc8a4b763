"""What is set aside of a source record that does not parse, or of a row that the data topic does not take."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.record_size import Headers


@dataclass(frozen=True)
class DeadLetterRecord:
    """One record of the dead-letter topic.

    :param headers: why it is there, where it comes from, and what was left out of it.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers


def dead_letter(
    rows: pa.RecordBatch, row: int, error: str, source: str, limit: TopicLimit
) -> DeadLetterRecord:
    """Return the source record of a row; where the dead-letter topic does not take it, its place and digest.

    :param error: why the row is set aside.
    :param source: the source topic.
    :param limit: of the dead-letter topic.
    """
    key, value = _field(rows, "__sinks_raw_key", row), _field(rows, "__sinks_raw_value", row)
    headers = [("error", error.encode()), *_place(rows, row, source)]
    if key is None and value is None:  # an output row of many records, or the record was not kept
        return _digested(_field(rows, "__sinks_key", row), _field(rows, "__sinks_value", row), headers, limit)
    if not limit.why_not(key, value, headers):
        return DeadLetterRecord(key, value, headers)
    return _digested(key, value, headers, limit)


def _digested(
    key: bytes | None, value: bytes | None, headers: Headers, limit: TopicLimit
) -> DeadLetterRecord:
    content = value or b""
    digest = hashlib.sha256(content).hexdigest()
    told = [*headers, ("value.bytes", str(len(content)).encode()), ("value.sha256", digest.encode())]
    return DeadLetterRecord(None if limit.why_not(key, None, told) else key, None, told)


def _place(rows: pa.RecordBatch, row: int, source: str) -> Iterator[tuple[str, bytes]]:
    yield "source.topic", source.encode()
    partition, offset = rows.column("__sinks_partition")[row], rows.column("__sinks_offset")[row]
    if partition.is_valid:
        yield "source.partition", str(partition.as_py()).encode()
        yield "source.offset", str(offset.as_py()).encode()


def _field(rows: pa.RecordBatch, name: str, row: int) -> bytes | None:
    found: bytes | None = rows.column(name)[row].as_py()
    return found
