"""What a row of many fields costs, from JSON to JSON, with and without methods that HotSpot compiles.

python -m tests.bench.wide_rows

One JVM, one task. Arms: Spark's ``from_json`` and ``to_json`` as people write them, and the rows of a sink,
with methods of any size, which is Spark's default, and of the size that sinks allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.kafka.encoding import encode
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import large_rows, transform
from airflow_provider_sinks.streaming.session import METHOD_BYTES, METHOD_BYTES_MAX
from tests.bench.task_time import one_task_at_a_time, print_costs, task_us

ROWS = 100_000
_FIELDS = (5, 12, 30)
_KINDS = ("BIGINT", "STRING", "DOUBLE", "TIMESTAMP")
_VALUES = ("id * 7", "concat('text ', id % 999)", "id % 1000 / 8", "timestamp_millis(1700000000000 + id)")
_ANY_SIZE = "65535"
_ROW_BYTES = 4_096


def _columns(fields: int) -> Iterator[tuple[str, str, str]]:
    """Give name, type and value of each column."""
    for number in range(fields):
        which = number % len(_KINDS)
        yield f"column_{number}", _KINDS[which], _VALUES[which]


def _schema(fields: int) -> str:
    return ", ".join(f"{name} {kind}" for name, kind, _ in _columns(fields))


def _records(session: SparkSession, fields: int) -> DataFrame:
    """Return records as Spark's Kafka source has them, kept in memory."""
    values = ", ".join(f"{value} AS {name}" for name, _, value in _columns(fields))
    records = session.range(0, ROWS, 1, 1).selectExpr(
        "CAST(concat('key-', id % 50000) AS BINARY) AS key",
        f"CAST(to_json(struct({values})) AS BINARY) AS value",
        "'source' AS topic",
        "0 AS partition",
        "id AS offset",
        "timestamp_millis(0) AS timestamp",
        "0 AS timestampType",
    )
    kept = records.cache()
    kept.count()
    return kept


def _by_spark(records: DataFrame, fields: int) -> DataFrame:
    row = sql.from_json(sql.col("value").cast("string"), _schema(fields))
    parsed = records.select("key", row.alias("row")).select("key", "row.*")
    value = sql.to_json(sql.struct(*(name for name, _, _ in _columns(fields))))
    return parsed.select("key", value.cast("binary").alias("value"))


def _by_a_sink(records: DataFrame, fields: int) -> DataFrame:
    source = {"connection": "kafka", "topic": "source", "format": "json", "schema": _schema(fields)}
    target = {"connection": "kafka", "topic": "target"}
    data = {"name": "wide", "source": {"kafka": source}, "target": {"kafka": target}}
    spec = kafka_sink(SinkSpec.parse({**data, "query": "SELECT * FROM source"}))
    parsed = transform.parse(records, spec.source.kafka)
    parsed.createOrReplaceTempView(transform.SOURCE_VIEW)
    output = records.sparkSession.sql(spec.job_sql)
    rows = encode(output, spec, None).over(output)
    return large_rows.marked(rows, _ROW_BYTES)


def _cost(session: SparkSession, rows: Callable[[], DataFrame], method_bytes: str) -> float:
    """Return µs of processor time per row."""
    session.conf.set(METHOD_BYTES, method_bytes)
    rows().write.format("noop").mode("overwrite").save()
    return task_us(session) / ROWS


def _arms(session: SparkSession, kept: dict[int, DataFrame]) -> dict[str, Callable[[], float]]:
    """Return what runs each arm."""
    found: dict[str, Callable[[], float]] = {}
    for fields, records in kept.items():
        theirs, ours = partial(_by_spark, records, fields), partial(_by_a_sink, records, fields)
        found[f"{fields} fields: from_json, to_json"] = partial(_cost, session, theirs, _ANY_SIZE)
        found[f"{fields} fields: a sink, methods of any size"] = partial(_cost, session, ours, _ANY_SIZE)
        found[f"{fields} fields: a sink"] = partial(_cost, session, ours, METHOD_BYTES_MAX)
    return found


def main() -> None:
    """Run the arms, and print a table."""
    with one_task_at_a_time({}) as session:
        kept = {fields: _records(session, fields) for fields in _FIELDS}
        print_costs("rows of JSON are read and written by", ROWS, partial(_arms, session, kept))


if __name__ == "__main__":
    main()
