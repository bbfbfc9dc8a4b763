"""Dead letters as rows of a table: the columns tell what a Kafka letter's headers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.core.dead_letters.letter import (
    Circumstances,
    ErrorClass,
    headers_from_json,
    headers_to_json,
)

_TYPES = {
    "at": pa.timestamp("us", tz="UTC"),
    "sink": pa.string(),
    "error": pa.string(),
    "source_topic": pa.string(),
    "source_partition": pa.int32(),
    "source_offset": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "error_class": pa.string(),
    "source_timestamp": pa.timestamp("us", tz="UTC"),
    "headers": pa.string(),
    "generation": pa.int64(),
    "epoch": pa.int64(),
    "spec_digest": pa.string(),
    "replays": pa.int32(),
}


@dataclass(frozen=True)
class LetterRows:
    """Makes the rows of one epoch's dead letters.

    :param names: the columns that the table has, and that are written.
    """

    names: Sequence[str]
    circumstances: Circumstances

    def of(self, rows: pa.RecordBatch, *, is_of_target: bool) -> pa.RecordBatch:
        """Return a row for each source record.

        :param rows: with partition, offset, error and the record as it came.
        :param is_of_target: the table refused them; else they came with their error.
        """
        names = (columns.PARTITION, columns.OFFSET, columns.ERROR, *columns.RAW)
        found = [self._letter(row, is_of_target) for row in rows.select(list(names)).to_pylist()]
        schema = pa.schema({name: _TYPES[name] for name in self.names})
        return pa.RecordBatch.from_pylist(found, schema)

    def _letter(self, row: dict[str, Any], is_of_target: bool) -> dict[str, Any]:
        told = self.circumstances
        origin = told.origin(
            row[columns.PARTITION],
            row[columns.OFFSET],
            row[columns.RAW_TIMESTAMP],
            headers_from_json(row[columns.RAW_HEADERS]),
        )
        at_ms = origin.timestamp_ms
        error = row[columns.ERROR].replace("\0", "\N{REPLACEMENT CHARACTER}")
        return {
            "at": datetime.now(UTC),
            "sink": told.sink,
            "error": error,
            "source_topic": origin.topic,
            "source_partition": origin.partition,
            "source_offset": origin.offset,
            "key": row[columns.RAW_KEY],
            "value": row[columns.RAW_VALUE],
            "error_class": _class_of(error, is_of_target).value,
            "source_timestamp": None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC),
            "headers": headers_to_json(origin.headers) if origin.headers else None,
            "generation": told.generation,
            "epoch": told.epoch,
            "spec_digest": told.spec_digest,
            "replays": origin.replays,
        }


def _class_of(error: str, is_of_target: bool) -> ErrorClass:
    """Return the class of an error: what Spark says of a value is of its conversion, or of its record."""
    if is_of_target:
        return ErrorClass.REFUSED
    return ErrorClass.CONVERT if ErrorClass.of(error) is ErrorClass.CONVERT else ErrorClass.PARSE
