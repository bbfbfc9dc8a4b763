"""A Spark with a format's own jars, in a process of its own: the reader and administrator that is not us.

It answers one statement after the other, given and answered as lines of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.local import jars, spark

_ANSWER = "answer:"
_USUAL = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # by default each look at a table has 50 tasks
}


class LakeSpark:
    """A running Spark.

    :param folder: for its log.
    :param found: jars beside Spark's own.
    :param settings: of its session.
    """

    def __init__(self, folder: Path, found: Sequence[Path], settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "spark.log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **spark.spark_environment()},
        )
        self._send({**_USUAL, "spark.jars": ",".join(map(str, found)), **settings})

    def sql(self, statement: str, table: str, **names: object) -> list[Any]:
        """Run a statement, and return its rows, each a list.

        :param table: stands in the place of ``{t}``; others by their own names.
        """
        for name, value in {"t": table, **names}.items():
            statement = statement.replace(f"{{{name}}}", str(value))
        self._send(statement)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                answer = json.loads(line.removeprefix(_ANSWER))
                if isinstance(answer, str):
                    raise AssertionError(answer)
                return list(answer)
        raise AssertionError(f"Spark has ended, see {self._log.name}")

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _send(self, what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()


def iceberg_spark(folder: Path, options: IcebergOptions) -> LakeSpark:
    """Return a Spark whose catalog is called as the sinks' own."""
    catalog = {"spark.sql.defaultCatalog": options.name, **iceberg_settings(options)}
    catalog[f"spark.sql.catalog.{options.name}.cache-enabled"] = "false"
    return LakeSpark(folder, jars.resolve(*jars.SPARK_ICEBERG), catalog)


def delta_spark(folder: Path) -> LakeSpark:
    """Return a Spark that knows Delta tables by their paths."""
    return LakeSpark(folder, delta_jars(), {**DELTA_SETTINGS, "spark.sql.warehouse.dir": str(folder)})


def delta_jars() -> Sequence[Path]:
    """Return what Spark needs for Delta beyond its own jars."""
    return jars.resolve(*jars.SPARK_DELTA, beside=spark.spark_home() / "jars")


def iceberg_settings(options: IcebergOptions) -> dict[str, str]:
    """Return settings of a session that knows a catalog by its name; a password is among them."""
    given, name = options.conninfo, f"spark.sql.catalog.{options.name}"
    return {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "jdbc",
        f"{name}.uri": f"jdbc:postgresql://{given['host']}:{given['port']}/{given['dbname']}",
        f"{name}.jdbc.user": given["user"],
        f"{name}.jdbc.password": given["password"],
        f"{name}.jdbc.schema-version": "V1",
        f"{name}.warehouse": options.parameters["warehouse"],
    }


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for key, value in json.loads(sys.stdin.readline()).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    for line in sys.stdin:
        try:
            answer: Any = [list(row) for row in session.sql(json.loads(line)).collect()]
        except Exception as error:  # noqa: BLE001  told to whoever asked
            answer = f"{type(error).__name__}: {error}"
        print(_ANSWER + json.dumps(answer, default=str), flush=True)  # noqa: T201  it is the answer
    session.stop()


if __name__ == "__main__":
    main()
