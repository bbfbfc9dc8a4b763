"""Lookup tables: read by the driver, refreshed on time, and known to queries as views."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.clients.postgres import PostgresClient
from airflow_provider_sinks.core.options import ResolvedConnections
from airflow_provider_sinks.core.plan import MATCHED_COLUMN
from airflow_provider_sinks.core.spec import SinkSpec


class Lookups:
    """The lookups of one sink, as temporary views of their names.

    A refresh that fails fails the epoch: a row joined with a table that is older than the user allowed would
    be wrong without anybody seeing it. The retry reads the table again.

    :param spec: names the lookups, and how old their rows may be.
    :param connections: the resolved connections of the launch.
    """

    def __init__(self, spec: SinkSpec, connections: ResolvedConnections) -> None:
        self._spec = spec
        self._connections = connections
        self._read_at: dict[str, float] = {}
        self._session = ""

    def refresh(self, spark: SparkSession) -> None:
        """Read what was never read or is older than its refresh interval. Called before each epoch.

        :param spark: the session in which the query will run; a streaming query has one of its own.
        """
        session = str(spark._jsparkSession.sessionUUID())  # noqa: SLF001  PySpark shows no id of a session
        if session != self._session:
            self._session, self._read_at = session, {}
        for name in self._spec.lookups:
            if self._is_due(name):
                self._read(spark, name)
                self._read_at[name] = time.monotonic()

    def _is_due(self, name: str) -> bool:
        if name not in self._read_at:
            return True
        refresh = self._spec.refresh_of(name)
        return refresh is not None and time.monotonic() - self._read_at[name] >= refresh.total_seconds()

    def _read(self, spark: SparkSession, name: str) -> None:
        table = self._spec.lookups[name].postgres
        client = PostgresClient(self._connections.postgres(table.connection))
        rows = client.read(table.table, table.columns, table.max_bytes)
        frame = spark.createDataFrame(rows).withColumn(MATCHED_COLUMN, sql.lit(True))
        frame.createOrReplaceTempView(name)
