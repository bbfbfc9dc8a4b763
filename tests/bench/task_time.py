"""Processor time of the thread of one task in one JVM, for arms that run in turn."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

_ROUNDS = 7
_NOT_COUNTED = 2


@contextmanager
def one_task_at_a_time(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session with one core; the plan of a query does not change while it runs."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    own = {"spark.sql.adaptive.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in {**settings, **own}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def task_us(session: SparkSession) -> float:
    """Return the processor time of the newest stage's task, in µs."""
    time.sleep(0.5)  # Spark writes its figures down a little later
    newest: Any = max(_stages(session), key=lambda stage: stage.stageId())
    return float(newest.executorCpuTime()) / 1000


def print_costs(what: str, rows: int, arms: Callable[[], Mapping[str, Callable[[], float]]]) -> None:
    """Run the arms in turn, round by round, and print a table of their costs.

    :param what: the head of the first column.
    :param rows: of a run.
    :param arms: by name, what runs one and returns its µs per row; asked for each round.
    """
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    counted = f"{_ROUNDS} rounds behind {_NOT_COUNTED} that are not counted"
    print(f"{rows:,} rows, {counted}; load of the machine: {load}\n")
    costs: dict[str, list[float]] = defaultdict(list)
    for number in range(_ROUNDS + _NOT_COUNTED):
        found = arms()
        for name in list(found)[:: 1 if number % 2 else -1]:
            spent = found[name]()
            if number >= _NOT_COUNTED:
                costs[name].append(spent)
    print(f"| {what} | µs per row, medians (min to max) |\n|---|---|")
    for name, all_spent in costs.items():
        print(f"| {name} | {median(all_spent):.2f} ({min(all_spent):.2f} to {max(all_spent):.2f}) |")


def _stages(session: SparkSession) -> list[Any]:
    context: Any = session.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    found = (
        context._jsc.sc()
        .statusStore()
        .stageList(None, False, False, none, context._jvm.java.util.ArrayList())
    )
    return [found.apply(number) for number in range(found.size())]
