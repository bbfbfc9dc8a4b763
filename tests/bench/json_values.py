"""What it costs to show that a value is one whole JSON object that fits its schema: processor time, in turn.

python -m tests.bench.json_values

One JVM, one task, values of about 100 bytes. Arms: Spark's ``from_json`` as people write it, which takes the
first object of a value and makes null of what does not fit, and the reading of a sink, each with a schema
without decimals and one with, and with an object inside of the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.streaming.json_values import ERROR, read_json
from tests.bench.task_time import one_task_at_a_time, print_costs, task_us

ROWS = 400_000
_FIELDS = {"id": "bigint", "viewtime": "bigint", "userid": "string", "pageid": "string"}
_CASES = {
    "four fields": _FIELDS,
    "four fields and a decimal": {**_FIELDS, "price": "decimal(10,2)"},
    "four fields and an object": {**_FIELDS, "at": "struct<x:int,y:int>"},
}
_VALUES = {
    "id": "id",
    "viewtime": "1700000000000 + id",
    "userid": "concat('user_', id % 900)",
    "pageid": "repeat('p', 20)",
    "price": "cast(id % 10000 / 100 as decimal(10,2))",
    "at": "struct(cast(id % 7 as int) as x, cast(id % 11 as int) as y)",
}


def by_spark(schema: StructType) -> list[Column]:
    """Return the columns as Spark alone reads them."""
    parsed = sql.from_json(sql.col("value").cast("string"), schema)
    return [parsed.getField(field.name).alias(field.name) for field in schema]


def cost(session: SparkSession, records: DataFrame, columns: list[Column]) -> float:
    """Return µs of processor time per row."""
    records.select(*columns).write.format("noop").mode("overwrite").save()
    return task_us(session) / ROWS


def arms(session: SparkSession) -> dict[str, Callable[[], float]]:
    """Return what runs each arm."""
    found: dict[str, Callable[[], float]] = {}
    for name, fields in _CASES.items():
        schema = StructType()
        for field, kind in fields.items():
            schema.add(field, kind)
        told = ", ".join(f"{_VALUES[field]} as {field}" for field in fields)
        records = session.range(0, ROWS, 1, 1).selectExpr(f"cast(to_json(struct({told})) as binary) as value")
        judged, ours = read_json(records, schema)
        found[f"{name}: nothing but the value"] = partial(cost, session, records, [sql.col("value")])
        found[f"{name}: from_json"] = partial(cost, session, records, by_spark(schema))
        found[f"{name}: a sink"] = partial(cost, session, judged, [*ours, sql.col(ERROR)])
    return found


def main() -> None:
    """Run the arms, and print a table."""
    with one_task_at_a_time({}) as session:
        print_costs("values are read by", ROWS, partial(arms, session))


if __name__ == "__main__":
    main()
