"""The newest row of each key, in bounded memory."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import newest_rows
from airflow_provider_sinks.connectors.newest_rows import NewestRows

ROWS, BATCHES, VALUE_BYTES = 100, 20, 10_000


def as_spark_sends_them() -> Iterator[pa.RecordBatch]:
    """Batches that were read from a stream: all columns of one are views into one body."""
    stream = io.BytesIO()
    columns = {"name": pa.array([str(at) for at in range(ROWS)]), "id": pa.array(range(ROWS))}
    batch = pa.record_batch({**columns, "value": pa.array(["x" * VALUE_BYTES] * ROWS)})
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        for _ in range(BATCHES):
            writer.write_batch(batch)
    stream.seek(0)
    yield from pa.ipc.open_stream(stream)


def test_keys_do_not_hold_the_rows_that_were_spilled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_rows, "_IN_MEMORY_BYTES", 1)
    newest, batches = NewestRows(("name", "id")), as_spark_sends_them()
    newest.take(next(batches))
    tracemalloc.start()
    try:
        for batch in batches:
            newest.take(batch)
        del batch
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * ROWS * VALUE_BYTES
    assert newest.keys().num_rows == ROWS
    assert sum(batch.num_rows for batch in newest.newest()) == ROWS
    newest.close()
