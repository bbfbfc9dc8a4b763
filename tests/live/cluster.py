"""``spark-submit`` to the local YARN in cluster mode, small and quick."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow_provider_sinks.local.yarn import YarnCluster
from tests.faults.driver import QUICK_START, Process, submit

SMALL: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.driver.memory": "600m",
    "spark.driver.memoryOverhead": "100m",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "100m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.yarn.maxAppAttempts": "1",
    "spark.yarn.scheduler.heartbeat.interval-ms": "300",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings of a driver that shares two cores with a whole cluster."""


def submit_to(
    yarn: YarnCluster, folder: Path, *arguments: str, tag: str, conf: Mapping[str, str] | None = None
) -> Process:
    """Run ``spark-submit`` until the application has ended.

    :param folder: for its log.
    :param arguments: from ``--files`` to the arguments of the application.
    :param tag: what the resource manager finds the application by.
    """
    settings = {**yarn.spark_settings, **SMALL, "spark.yarn.tags": tag, **(conf or {})}
    env = {**yarn.environment, "PYTHONPATH": ""}  # a node knows nothing of this checkout
    where = ("--master", "yarn", "--deploy-mode", "cluster")
    return submit(f"submit {tag}", folder, *where, *arguments, conf=settings, env=env)
