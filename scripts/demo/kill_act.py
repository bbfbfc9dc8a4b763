"""An act of the demo: the driver of a sink into a Postgres table is killed in the middle.

Airflow launches the sink again, which goes on behind what the table holds. A plain query and a plain consumer
then compare the table with the source topic.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

from airflow_provider_sinks.drivers.abandoned import DriverMark
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.stack import Stack
from scripts.demo.act import Act
from scripts.demo.audit import read_committed, views_of
from scripts.demo.launches import launches, wait_while_it_runs
from scripts.demo.runs import await_end
from scripts.demo.say import quote, step

SINK, SOURCE = "pageviews_table", "pageviews"
_EPOCHS_BEFORE = 3


def kill_a_driver(stack: Stack, *, after: Act[object]) -> None:
    """Start the sink, kill its driver, let Airflow launch it again, and compare table and topic.

    :param after: the act whose end it starts after.
    """
    after.result()
    run = stack.airflow.trigger(SINK)
    launch = wait_while_it_runs(
        stack, SINK, "in the middle", lambda seen: seen.epoch >= _EPOCHS_BEFORE and any(seen.lag.values())
    )
    driver = DriverMark.read(launch)
    if driver is None or not driver.lives(launch):
        raise LocalServiceError(f"sink {SINK} has ended before it could be killed")
    os.kill(driver.pid, signal.SIGKILL)
    quote([f"kill -9 {driver.pid}"])
    await_end(stack, run)
    if len(launches(stack, SINK)) == 1:
        raise LocalServiceError(f"sink {SINK} was not launched again")
    _compare(stack)


def _compare(stack: Stack) -> None:
    with step("Audit") as line:
        wanted = Counter(views_of(read_committed(stack.broker, SOURCE)))
        with stack.postgres.connect() as database:
            query = "SELECT userid, pageid, viewtime FROM public.pageviews"
            found = Counter(database.execute(query).fetchall())
        missing, more = (wanted - found).total(), (found - wanted).total()
        line.leave(
            f"{found.total():,} rows in the table out of {wanted.total():,} in the topic, "
            f"missing {missing}, duplicates {more}"
        )
    if missing or more:
        raise LocalServiceError("the table is not what it should be")
