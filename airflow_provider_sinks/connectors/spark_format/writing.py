"""Spark's own writers, asked for one epoch at a time; only a driver loads it.

Files go by the class behind ``writeStream.format("parquet")``: it lists the files of a batch in its log under
the number of the batch, once, and that log is what its readers go by. It is called by itself because the
numbers of a stream begin again with each checkpoint, and the sink would then drop what has a number that is
taken. All else goes by ``DataFrame.write``, as a ``foreachBatch`` would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.spark_format.formats import SparkFormat
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

_ROWS = "rows"
_FILE_FORMATS: Mapping[str, str] = {
    "parquet": "parquet.ParquetFileFormat",
    "orc": "orc.OrcFileFormat",
    "csv": "csv.CSVFileFormat",
    "json": "json.JsonFileFormat",
    "text": "text.TextFileFormat",
}
_EXECUTION = "org.apache.spark.sql.execution"
_FILE_SINK = f"{_EXECUTION}.streaming.sinks.FileStreamSink"


def write_files(
    rows: DataFrame, kind: SparkFormat, folder: str, options: Mapping[str, str], batch: int
) -> int:
    """Write rows by Spark's file sink, as one batch of it, and return their number.

    :param batch: its number; the sink writes none twice.
    """
    counted = rows.observe(_ROWS, _count())
    session: Any = rows.sparkSession
    jvm = session._jvm  # noqa: SLF001  PySpark has no public word for a sink
    utils = jvm.org.apache.spark.api.python.PythonUtils
    file_format = _class(jvm, f"{_EXECUTION}.datasources.{_FILE_FORMATS[kind.name]}")()
    sink = _class(jvm, _FILE_SINK)(
        session._jsparkSession,  # noqa: SLF001  likewise
        folder,
        file_format,
        utils.toSeq([]),
        utils.toScalaMap(dict(options)),
    )
    frame = counted._jdf  # noqa: SLF001  likewise
    sink.addBatch(batch, frame)
    return int(frame.queryExecution().observedMetrics().apply(_ROWS).getLong(0))


def write_rows(rows: DataFrame, kind: SparkFormat, path: str | None, options: Mapping[str, str]) -> int:
    """Append rows by the format's own writer, and return their number."""
    if kind.is_shown:
        number = rows.count()
        rows.write.format(kind.name).options(**options).mode("append").save()
        return number
    seen = Observation(_ROWS)
    writer = rows.observe(seen, _count()).write.format(kind.name).options(**options).mode("append")
    writer.save(path)
    return int(seen.get[_ROWS])


def demand_installed(session: Any, kind: SparkFormat, driver: str | None) -> None:
    """See that Spark has the format, and the JDBC driver where there is one. Runs no job.

    :param driver: the class of the JDBC driver.
    :raises ConfigurationError: it has not.
    """
    jvm = session._jvm  # noqa: SLF001  PySpark has no public word for it
    conf = session._jsparkSession.sessionState().conf()  # noqa: SLF001  likewise
    try:
        if kind.is_files:
            _class(jvm, _FILE_SINK)
        jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(kind.name, conf)
    except (Py4JError, TypeError) as error:
        problem = Problem("target.spark.format", f"{kind.name} is not to be had: {_first_line(error)}")
        raise ConfigurationError("Spark has no such format", [problem], _brings(kind.name)) from error
    if driver is not None:
        try:
            jvm.org.apache.spark.util.Utils.classForName(driver, True, False)
        except Py4JError as error:
            problem = Problem("target.spark.format", f"jdbc needs {driver}, and Spark has no such class")
            hint = 'Give packages="org.postgresql:postgresql:<version>", or jars=.'
            raise ConfigurationError("Spark has no JDBC driver for Postgres", [problem], hint) from error


def _brings(name: str) -> str:
    return f"Give packages= or jars= that bring {name}, in the version of this Spark."


def _class(jvm: Any, name: str) -> Any:
    """Return a class of Spark's; what is none is a package to py4j, which fails when it is called."""
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    if type(found).__name__ != "JavaClass":
        raise TypeError(f"this Spark has no {name}")
    return found


def _count() -> Any:
    return sql.count(sql.lit(1)).alias(_ROWS)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "Exception" in line), lines[0] if lines else "")[:300]
