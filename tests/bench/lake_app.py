"""The Spark application of an arm that writes a table of files as the format's own documents say.

spark-submit lake_app.py append|merge <progress file> <bootstrap> <source> <table> <rows per epoch>
    <checkpoint> <file>

The file has the format, settings of the session, and statements that make the table.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.bench.app import ToFile, read
from tests.bench.tables import COLUMNS

KEY = "id"
_NEWEST = f"""
    SELECT id, userid, price, payload FROM (
      SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY partition DESC, offset DESC) AS newest
      FROM {{rows}})
    WHERE newest = 1"""  # noqa: S608  no user's text is in it
_MERGE = f"""
    MERGE INTO {{table}} AS t USING ({_NEWEST}) AS s ON t.{KEY} = s.{KEY}
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def append(rows: DataFrame, kind: str, table: str, checkpoint: str) -> None:
    """Write by the format's own streaming sink."""
    writer = rows.drop("partition", "offset").writeStream.format(kind).outputMode("append")
    started = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    (started.start(table) if kind == "delta" else started.toTable(table)).awaitTermination()


def merge(rows: DataFrame, kind: str, table: str, checkpoint: str) -> None:
    """Write by a plain MERGE of each epoch, of the newest row of each key in it: it takes a key once."""
    named = f"delta.`{table}`" if kind == "delta" else table

    def write(epoch: DataFrame, _number: int) -> None:
        epoch.sparkSession.sql(_MERGE.format(table=named, rows="{rows}"), rows=epoch).collect()

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Run the arm that the arguments name."""
    arm, file, bootstrap, source, table, rows_per_epoch, checkpoint, options = sys.argv[1:]
    given = json.loads(Path(options).read_text())
    builder = SparkSession.builder.appName(f"{given['format']}'s own {arm}")
    for name, value in given["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.streams.addListener(ToFile(Path(file)))
    values = "CAST(value AS STRING) AS value", "partition", "offset"
    records = read(spark, bootstrap, source, rows_per_epoch).selectExpr(*values)
    rows = records.selectExpr(*COLUMNS, "partition", "offset")
    for statement in given["statements"]:
        spark.sql(statement)
    {"append": append, "merge": merge}[arm](rows, given["format"], table, checkpoint)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
