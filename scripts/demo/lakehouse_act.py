"""An act of the demo: the same pageviews in four targets, by four sinks of one YAML file, each killed once.

Airflow launches each sink again, which goes on behind what its target holds. Each target is then read by a
program that knows nothing of sinks, and compared with the source topic row by row.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from typing import NamedTuple

from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from airflow_provider_sinks.drivers.abandoned import DriverMark
from airflow_provider_sinks.local.object_store import BUCKET, ObjectStore, delta_extra, iceberg_extra
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.stack import Stack
from scripts.demo.act import Act
from scripts.demo.audit import read_committed, views_of
from scripts.demo.launches import launches, wait_while_it_runs
from scripts.demo.runs import await_end
from scripts.demo.say import quote, step

SOURCE, TOPIC, TABLE = "pageviews", "views", "views"
_SIDE_BY_SIDE = 2
_EPOCHS_BEFORE = 2

View = tuple[str, str, int]
"""Userid, pageid, viewtime."""


class Line(NamedTuple):
    """What stands in a target, beside what should.

    :param launches: how many drivers it took.
    """

    sink: str
    reader: str
    rows_in: int
    rows_out: int
    missing: int
    duplicates: int
    launches: int


def fill_four_targets(stack: Stack, *, after: Act[object]) -> Sequence[Line]:
    """Run the sinks, two at a time, kill each once, and compare each target with the topic.

    :param after: the act whose end it starts after.
    """
    after.result()
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        for told in [pool.submit(copy_context().run, _kill_once, stack, sink) for sink in _READERS]:
            told.result()
    with step("Audit") as line:
        wanted = Counter(views_of(read_committed(stack.broker, SOURCE)))
        lines = [_compared(stack, sink, wanted) for sink in _READERS]
        line.leave(f"{', '.join(f'{found.rows_out:,}' for found in lines)} rows out of {wanted.total():,}")
    if wrong := [found for found in lines if found.missing or found.duplicates]:
        raise LocalServiceError("a target is not what it should be", "; ".join(map(str, wrong)))
    return lines


def _kill_once(stack: Stack, sink: str) -> None:
    run = stack.airflow.trigger(sink)
    launch = wait_while_it_runs(
        stack, sink, "in the middle", lambda seen: seen.epoch >= _EPOCHS_BEFORE and any(seen.lag.values())
    )
    driver = DriverMark.read(launch)
    if driver is None or not driver.lives(launch):
        raise LocalServiceError(f"sink {sink} has ended before it could be killed")
    os.kill(driver.pid, signal.SIGKILL)
    quote([f"kill -9 {driver.pid}, the driver of {sink}"])
    await_end(stack, run)
    if len(launches(stack, sink)) == 1:
        raise LocalServiceError(f"sink {sink} was not launched again")


def _compared(stack: Stack, sink: str, wanted: Counter[View]) -> Line:
    reader, read = _READERS[sink]
    found = Counter(read(stack))
    missing, more = (wanted - found).total(), (found - wanted).total()
    times = len(launches(stack, sink))
    return Line(sink, reader, wanted.total(), found.total(), missing, more, times)


def _of_topic(stack: Stack) -> Iterable[View]:
    return views_of(read_committed(stack.broker, TOPIC))


def _of_postgres(stack: Stack) -> Iterable[View]:
    with stack.postgres.connect() as database:
        return database.execute("SELECT userid, pageid, viewtime FROM public.views").fetchall()


def _of_iceberg(stack: Stack) -> Iterable[View]:
    return iceberg_views(stack.postgres, stack.store)


def _of_delta(stack: Stack) -> Iterable[View]:
    return delta_views(stack.store)


def iceberg_views(server: Postgres, store: ObjectStore) -> Iterable[View]:
    """Return what stands in the Iceberg table."""
    login = f"{server.user}:{server.password}@{server.host}:{server.port}/{server.dbname}"
    storage = iceberg_extra(store)
    with closing(SqlCatalog("lake_prod", uri=f"postgresql+psycopg://{login}", **storage)) as catalog:
        found = catalog.load_table(f"web.{TABLE}").scan().to_arrow().to_pylist()
    return map(_view, found)


def delta_views(store: ObjectStore) -> Iterable[View]:
    """Return what stands in the Delta table."""
    table = DeltaTable(f"s3://{BUCKET}/{TABLE}", storage_options=delta_extra(store))
    return map(_view, table.to_pyarrow_table().to_pylist())


def _view(row: Mapping[str, object]) -> View:
    return str(row["userid"]), str(row["pageid"]), int(str(row["viewtime"]))


_READERS: Mapping[str, tuple[str, Callable[[Stack], Iterable[View]]]] = {
    "views_in_kafka": ("confluent-kafka", _of_topic),
    "views_in_postgres": ("psycopg", _of_postgres),
    "views_in_iceberg": ("PyIceberg", _of_iceberg),
    "views_in_delta": ("delta-rs", _of_delta),
}
"""By sink: what reads its target, and how."""
