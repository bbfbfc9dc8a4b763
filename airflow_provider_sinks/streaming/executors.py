"""Brings the executors' Python up while the driver looks at the target, and finds what they lack.

That is known before the fence: a start whose executors cannot write leaves the run in force alone.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.streaming import daemon
from airflow_provider_sinks.streaming.task_report import REPORT_SCHEMA, TaskReport

_MISSING = "missing"
_NO_MODULE = re.compile(r"No module named '([^']+)'")


class Warmup:
    """A small job on as many tasks as run at once: daemons fork their workers, and code is loaded.

    The first epoch would pay for it otherwise, after the target was asked; so the two go side by side.

    :param spark: the session of this driver.
    :param modules: what the target's writers are made of, and what tasks read and write with.
    """

    def __init__(self, spark: SparkSession, modules: Sequence[str]) -> None:
        self._spark = spark
        self._modules = tuple(modules)
        self._reports: list[TaskReport] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)
        self._thread.start()

    def demand(self) -> None:
        """Wait for the end of the job.

        :raises ConfigurationError: when an executor cannot run a writer, naming what it lacks.
        """
        self._thread.join()
        problems = sorted({report.detail for report in self._reports if report.outcome == _MISSING})
        if self._failure is not None:
            found = _NO_MODULE.search(str(self._failure))  # the daemon did not even start
            if found is None:
                raise self._failure
            problems = [f"an executor has no {found[1]}: {found[0]}"]
        if problems:
            raise ConfigurationError(
                "an executor cannot write for this sink",
                [Problem("", problem) for problem in problems],
                "Install the packages where the executors run: in their image, or by `archives=`.",
            ) from self._failure

    def _run(self) -> None:
        try:
            tasks = self._spark.sparkContext.defaultParallelism
            frame = self._spark.range(0, tasks, 1, tasks).mapInArrow(
                partial(_look_around, self._modules), REPORT_SCHEMA
            )
            self._reports = [TaskReport.from_json(row.report) for row in frame.collect()]
        except BaseException as error:  # noqa: BLE001  raised again where the result is needed
            self._failure = error


def _look_around(modules: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    for _ in batches:
        pass
    lacks = _lacks(modules)
    yield TaskReport("", _MISSING if lacks else "", detail=lacks).to_batch()


def _lacks(modules: Sequence[str]) -> str:
    if not daemon.input_is_proved():
        return f"an executor does not run {daemon.MODULE}"
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        return f"an executor has no {error.name}: {error}"
    return ""
