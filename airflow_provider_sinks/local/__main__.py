"""Fetch what the local stack needs beyond Python packages: ``python -m airflow_provider_sinks.local``."""

from __future__ import annotations

import sys

from airflow_provider_sinks.local import jars, spark
from airflow_provider_sinks.local.processes import LocalServiceError


def main() -> int:
    """Return 0 when all jars are there."""
    try:
        jars.resolve(*jars.KAFKA_BROKER)
        jars.unpacked(jars.SCHEMA_REGISTRY, "all")
        spark.kafka_jars()
        jars.resolve(*jars.SPARK_ICEBERG)
        jars.resolve(*jars.SPARK_DELTA, beside=spark.spark_home() / "jars")
        jars.resolve(*jars.OBJECT_STORE)
    except LocalServiceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
