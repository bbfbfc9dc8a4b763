"""What a JVM loads before there is a session is there, in the Spark that sinks run on."""

from __future__ import annotations

from pyspark.sql import SparkSession

from airflow_provider_sinks.streaming import early_jvm


def test_all_that_is_loaded_early_is_there(spark_session: SparkSession) -> None:
    early_jvm.load(spark_session._jvm)


def test_whoever_waits_goes_on_when_all_is_loaded(spark_session: SparkSession) -> None:
    early = early_jvm.EarlyJvm()

    early.wait()

    assert spark_session.range(1).count() == 1
