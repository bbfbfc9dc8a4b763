"""Brings up what writes while the driver looks at the target, and finds what it lacks.

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

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import daemon
from airflow_provider_sinks.streaming.copy_tasks import copies_here
from airflow_provider_sinks.streaming.driver_share import DriverShare
from airflow_provider_sinks.streaming.source_reading import packages_of
from airflow_provider_sinks.streaming.task_report import REPORT_SCHEMA, TaskReport

_MISSING = "missing"
_DRIVER, _EXECUTOR = "the driver", "an executor"
_REFUSALS = {
    _DRIVER: (
        "the driver cannot write for this sink",
        "Install the packages in the Python of this driver.",
    ),
    _EXECUTOR: (
        "an executor cannot write for this sink",
        "Install the packages where the executors run: in their image, or by `archives=`.",
    ),
}
_NO_MODULE = re.compile(r"No module named '([^']+)'")


class Warmup:
    """Loads the code of writers: where they run, and so that they run there.

    On executors it is a small job on as many tasks as run at once: daemons fork their workers. The first
    epoch would pay for it otherwise, after the target was asked; so the two go side by side.

    :param spark: the session of this driver.
    :param modules: what the target's writers are made of, and what tasks read and write with.
    :param here: the driver writes.
    """

    def __init__(self, spark: SparkSession, modules: Sequence[str], *, here: bool = False) -> None:
        self._spark = spark
        self._modules = tuple(modules)
        self._who = _DRIVER if here else _EXECUTOR
        self._reports: list[TaskReport] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)
        self._thread.start()

    def demand(self) -> None:
        """Wait for the end of the job.

        :raises ConfigurationError: when a writer cannot run there, naming what is missing.
        """
        self._thread.join()
        problems = sorted({report.detail for report in self._reports if report.outcome == _MISSING})
        if self._failure is not None:
            found = _NO_MODULE.search(str(self._failure))  # the daemon did not even start
            if found is None:
                raise self._failure
            problems = [f"an executor has no {found[1]}: {found[0]}"]
        if problems:
            primary, hint = _REFUSALS[self._who]
            raise ConfigurationError(
                primary,
                [Problem("", problem) for problem in problems],
                hint,
            ) from self._failure

    def _run(self) -> None:
        try:
            if self._who == _DRIVER:
                self._reports = [_report(_missing(self._modules, _DRIVER))]
                return
            tasks = self._spark.sparkContext.defaultParallelism
            frame = self._spark.range(0, tasks, 1, tasks).mapInArrow(
                partial(_look_around, self._modules), REPORT_SCHEMA
            )
            self._reports = [TaskReport.from_json(row.report) for row in frame.collect()]
        except BaseException as error:  # noqa: BLE001  raised again where the result is needed
            self._failure = error


def warm_up(spark: SparkSession, spec: SinkSpec, target: SinkConnector) -> Warmup | None:
    """Load what writes; nothing where records are copied without Spark, by this process."""
    modules = _modules(spec)
    if not modules or copies_here(spark, spec, target):
        return None
    return Warmup(spark, modules, here=_writes_here(spark, spec))


def warm_up_late(spark: SparkSession, spec: SinkSpec) -> None:
    """Bring workers up beside a driver that was thought to need none; nobody waits for them."""
    if _writes_here(spark, spec):
        Warmup(spark, _modules(spec))


def _writes_here(spark: SparkSession, spec: SinkSpec) -> bool:
    return DriverShare.of(spark, spec).bytes_max > 0 and not packages_of(spec)


def _modules(spec: SinkSpec) -> tuple[str, ...]:
    writers = kind(spec).writer_module
    return (*([writers] if writers else ()), *packages_of(spec))


def _look_around(modules: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    for _ in batches:
        pass
    yield _report(_lacks(modules)).to_batch()


def _report(lacks: str) -> TaskReport:
    return TaskReport("", _MISSING if lacks else "", detail=lacks)


def _lacks(modules: Sequence[str]) -> str:
    if not daemon.input_is_proved():
        return f"an executor does not run {daemon.MODULE}"
    return _missing(modules, _EXECUTOR)


def _missing(modules: Sequence[str], who: str) -> str:
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        return f"{who} has no {error.name}: {error}"
    return ""
