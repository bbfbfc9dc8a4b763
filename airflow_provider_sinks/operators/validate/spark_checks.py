"""The checks of a Spark connection: whether it exists, where it drives, and whether Spark is there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from airflow_provider_sinks.clients.time_limit import within
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.drivers.on_yarn import yarn_client
from airflow_provider_sinks.hooks.spark import SparkTarget

T = TypeVar("T")

CHECK_SECONDS = 20.0
"""How long one of these checks may take."""
_SUBMIT = "spark-submit"


def spark_checks(conn_id: str) -> Iterator[Check]:
    """Check that a Spark connection can be used from this worker."""
    checks = Checks(conn_id, Family.SPARK)
    looked, target = _attempt(checks, "connection", lambda: SparkTarget.of_connection(conn_id))
    if target is None:
        yield looked
        return
    yield replace(looked, detail=f"master {target.master}")
    binary = shutil.which(target.binary)
    if binary is None:
        hint = "Install Spark there and add its bin folder to PATH."
        yield checks.fails(target.binary, "is not on the PATH of this worker", hint)
    else:
        yield checks.passes(target.binary, binary)
    if target.drives_on_cluster:
        yield _attempt(checks, "resource manager", lambda: yarn_client(conn_id).version())[0]


def submit_command(conn_id: str) -> str:
    """Return the name of the command by which a Spark connection submits."""
    try:
        return SparkTarget.of_connection(conn_id).binary
    except SinkError:  # its own check says why
        return _SUBMIT


def _attempt(checks: Checks, name: str, action: Callable[[], T]) -> tuple[Check, T | None]:
    """Return the check that an action amounts to, and what the action returned if it passed."""
    begun = time.monotonic()
    try:
        result = within(CHECK_SECONDS, action)
    except SinkError as error:
        return checks.judged_by(name, error, time.monotonic() - begun), None
    except Exception as error:  # noqa: BLE001  what nobody foresaw is a line of the report, not its end
        return checks.fails(name, f"an unforeseen {type(error).__name__}", retryable=True), None
    return checks.passes(name, str(result), time.monotonic() - begun), result
