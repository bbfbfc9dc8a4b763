"""Dead letters as rows of a table: the columns tell what headers tell in a topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.core.dead_letters.headers import headers_from_json, headers_to_json
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass
from airflow_provider_sinks.core.dead_letters.spelling import NO_OTHERS, ROWS_COLUMN, SEVERAL

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
    ROWS_COLUMN: pa.string(),
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
        error = row[columns.ERROR].replace("\0", "\N{REPLACEMENT CHARACTER}")
        error_class = ErrorClass.REFUSED if is_of_target else ErrorClass.of_row(error)
        return {
            "at": datetime.now(UTC),
            "sink": told.sink,
            "error": error,
            "source_topic": origin.topic,
            "source_partition": origin.partition,
            "source_offset": origin.offset,
            "key": row[columns.RAW_KEY],
            "value": row[columns.RAW_VALUE],
            "error_class": error_class.value,
            "source_timestamp": _time(origin.timestamp_ms),
            "headers": headers_to_json(origin.headers) if origin.headers else None,
            "generation": told.generation,
            "epoch": told.epoch,
            "spec_digest": told.spec_digest,
            "replays": origin.replays,
            ROWS_COLUMN: SEVERAL if told.is_one_of_several(error_class) else NO_OTHERS,
        }


def _time(at_ms: int | None) -> datetime | None:
    """Return a time; none for one that no calendar has, such as of a producer that writes microseconds."""
    try:
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
