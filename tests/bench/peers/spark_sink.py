"""The application of Spark's own Kafka sink: spark-submit spark_sink.py <settings.json>

With ``rows_per_epoch`` it copies what is there and ends; without, it goes on with an epoch after the other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.bench.peers.workloads import SCHEMA, USERS_TABLE, Enrich


def main() -> None:
    """Copy the topic that the settings name."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    spark = SparkSession.builder.appName("spark's own sink").getOrCreate()
    rows = _source(spark, settings)
    if settings["enriched"]:
        rows = _enriched(spark, rows, settings["jdbc"])
    writer = rows.select("key", "value").writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", settings["bootstrap"]).option(
        "topic", settings["target"]
    )
    writer = writer.option("kafka.acks", "all").option("checkpointLocation", settings["checkpoint"])
    if settings["rows_per_epoch"]:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


def _source(spark: SparkSession, settings: dict[str, Any]) -> DataFrame:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings["bootstrap"])
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", settings["source"])
        .option("startingOffsets", "earliest")
    )
    if settings["rows_per_epoch"]:
        reader = reader.option("maxOffsetsPerTrigger", settings["rows_per_epoch"])
    return reader.load()


def _enriched(spark: SparkSession, rows: DataFrame, jdbc: dict[str, str]) -> DataFrame:
    """Apply the query, the lookup table read once and sent to every task."""
    options = {**jdbc, "dbtable": USERS_TABLE, "driver": "org.postgresql.Driver"}
    users = spark.read.format("jdbc").options(**options).load().cache()
    parsed = rows.select("key", f.from_json(f.col("value").cast("string"), SCHEMA).alias("row"))
    parsed.select("key", "row.*").createOrReplaceTempView("parsed")
    f.broadcast(users).createOrReplaceTempView("users")
    query = Enrich.query("parsed", "users").replace("SELECT ", "SELECT s.key, ", 1)
    found = spark.sql(query)
    value = f.to_json(f.struct(*[name for name in found.columns if name != "key"]))
    return found.select("key", value.alias("value"))


if __name__ == "__main__":
    main()
