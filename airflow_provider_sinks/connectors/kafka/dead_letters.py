"""What is set aside of a source record that does not parse, or of a row that the data topic does not take."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.row_keys import keyless_letter
from airflow_provider_sinks.core.dead_letters.headers import Headers, headers_from_json
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass
from airflow_provider_sinks.core.dead_letters.spelling import letter_headers


@dataclass(frozen=True)
class DeadLetterRecord:
    """One record of the dead-letter topic.

    :param headers: why it is there, where it comes from, and what was left out of it.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size_bytes(self) -> int:
        """What it has, all together."""
        told = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + told


def dead_letter(
    rows: pa.RecordBatch,
    row: int,
    why: tuple[str, ErrorClass],
    circumstances: Circumstances,
    limit: TopicLimit,
) -> DeadLetterRecord:
    """Return the source record of a row; where the dead-letter topic does not take it, its place and digest.

    :param why: the row is set aside: the error, and its class.
    :param limit: of the dead-letter topic.
    :raises RejectedRowError: that is compacted, and the record has no key.
    """
    letter = _letter(rows, row, why, circumstances, limit)
    if letter.key is None and limit.is_compacted:
        detail = f"It is set aside without a key, and the topic is compacted. Why it is: {why[0]}"
        raise keyless_letter(limit.topic, circumstances.sink, detail)
    return letter


def _letter(
    rows: pa.RecordBatch,
    row: int,
    why: tuple[str, ErrorClass],
    circumstances: Circumstances,
    limit: TopicLimit,
) -> DeadLetterRecord:
    key, value = _field(rows, columns.RAW_KEY, row), _field(rows, columns.RAW_VALUE, row)
    origin = circumstances.origin(
        _field(rows, columns.PARTITION, row),
        _field(rows, columns.OFFSET, row),
        _field(rows, columns.RAW_TIMESTAMP, row),
        headers_from_json(_field(rows, columns.RAW_HEADERS, row)),
    )
    headers = letter_headers(*why, origin, circumstances)
    short = letter_headers(*why, replace(origin, headers=()), circumstances)
    if key is None and value is None:  # an output row of many records, or the record was not kept
        return _digested(_field(rows, KEY, row), _field(rows, VALUE, row), short, limit)
    if not limit.why_not(key, value, headers):
        return DeadLetterRecord(key, value, headers)
    return _digested(key, value, short, limit)


def _digested(
    key: bytes | None, value: bytes | None, headers: Headers, limit: TopicLimit
) -> DeadLetterRecord:
    content = value or b""
    digest = hashlib.sha256(content).hexdigest()
    told = (*headers, ("value.bytes", str(len(content)).encode()), ("value.sha256", digest.encode()))
    return DeadLetterRecord(None if limit.why_not(key, None, told) else key, None, told)


def _field(rows: pa.RecordBatch, name: str, row: int) -> Any:
    return rows.column(name)[row].as_py()
