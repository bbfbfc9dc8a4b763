"""Which epochs the driver writes itself: of few rows, and of small ones, whatever columns they have."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_provider_sinks.streaming import large_rows, small_epochs
from airflow_provider_sinks.streaming.measured_input import LARGE

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
LONG = f"repeat('x', {small_epochs.ROW_BYTES_MAX + 1})"


@pytest.mark.parametrize(
    ("column", "is_large"),
    [
        (LONG, True),
        (f"array('a', {LONG})", True),
        (f"map('a', {LONG})", True),
        (f"named_struct('a', {LONG})", True),
        ("array('a', 'b')", False),
        ("CAST(NULL AS ARRAY<STRING>)", False),
        ("1.5", False),
    ],
)
def test_a_row_is_large_by_all_that_it_holds(
    spark_session: SparkSession, column: str, is_large: bool
) -> None:
    rows = spark_session.sql(f"SELECT 1 AS __sinks_offset, 'k' AS key, {column} AS `a.b``c`")

    (found,) = large_rows.marked(rows, small_epochs.ROW_BYTES_MAX).collect()

    assert found[LARGE] is is_large
    assert (found["key"], found["a.b`c"] is None) == ((None, True) if is_large else ("k", "NULL" in column))
