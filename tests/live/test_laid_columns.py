"""Columns that are laid over the rows of each epoch are built again only for other rows."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.laid_columns import KeptColumns, LaidColumns

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")


class _Counted:
    """A projection that says how often it was built."""

    def __init__(self) -> None:
        self.builds = 0

    def build(self) -> LaidColumns:
        self.builds += 1
        twice = sql.col("a") * 2
        return LaidColumns((("b", twice),), (sql.col("a"), sql.col("b")), ((sql.col("b") + 1).alias("c"),))


def _rows(spark: SparkSession, kind: str, values: range) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], f"a {kind}")


def test_what_is_built_once_is_laid_over_the_rows_of_each_epoch(spark_session: SparkSession) -> None:
    kept, counted = KeptColumns(), _Counted()

    found = [
        kept.over(_rows(spark_session, "int", values), counted.build, "same").collect()
        for values in (range(2), range(5, 6))
    ]

    assert [[tuple(row) for row in rows] for rows in found] == [[(1,), (3,)], [(11,)]]
    assert counted.builds == 1


def test_they_are_built_again_for_other_columns_and_for_what_else_decides(
    spark_session: SparkSession,
) -> None:
    kept, counted = KeptColumns(), _Counted()
    ints, longs = (_rows(spark_session, kind, range(1)) for kind in ("int", "bigint"))

    for rows, about in ((ints, "one"), (longs, "one"), (longs, "two"), (ints, "one"), (ints, "one")):
        kept.over(rows, counted.build, about)

    assert counted.builds == 4
