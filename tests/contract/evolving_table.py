"""A Postgres table that a start may alter, and a query that asks for it."""

from __future__ import annotations

from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.testing.played_start import WRITERS, PlayedStart

WIDENS = {"on_schema_change": "widen"}
OUTPUT = {
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "what", "type": "string"},
        {"name": "region", "type": "string"},
        {"name": "__sinks_offset", "type": "long"},
    ]
}
SHAPE = """
    SELECT attname, format_type(atttypid, atttypmod), attcollation::regcollation::text FROM pg_attribute
    WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


def announcement_of(start: PlayedStart, epoch: int) -> ProgressRecord:
    """Return the record of a start behind the first epoch."""
    ends = {0: 1001, 1: 0}
    return start.record(epoch, ends, ends, writers=WRITERS)
