"""The main job, for real: ``make demo``, or ``python scripts/demo [--keep]``.

Pageviews in Kafka are joined with users in Postgres and written to Kafka exactly once, by Spark, run by
Airflow through ``dags/pageviews_enriched.py``. What happens then stands in :mod:`.acts`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from confluent_kafka import KafkaException
from httpx import HTTPError

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.local.processes import LocalServiceError, unwind_on_signals
from airflow_provider_sinks.local.progress import step
from airflow_provider_sinks.local.stack import Stack
from scripts.demo import avro_act, keep, pageviews
from scripts.demo.acts import QUIET_SOURCE, SOURCE, play
from scripts.demo.say import say

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 only if everything went as it must."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything up, and say how to stop it")
    parser.add_argument("--let-go", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unwind_on_signals()
    try:
        if options.keep:
            return keep.run_until_it_lets_go([str(Path(__file__).parent), "--let-go"])
        return _perform(options.let_go)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SinkError as error:
        return _fail(error)


def _perform(let_go: int | None) -> int:
    """Play the whole demo and return its exit code.

    :param let_go: with ``--keep``: the file descriptor of the command that waits for us.
    """
    started = time.monotonic()
    with _stack() as stack:
        code = 0
        try:
            play(stack)
        except (SinkError, KafkaException, HTTPError) as error:
            code = _fail(error)
        minutes, seconds = divmod(round(time.monotonic() - started), 60)
        say(f"\nThe demo {'failed' if code else 'passed'} after {minutes} min {seconds} s.")
        if let_go is not None:
            _leave_up(stack)
            keep.let_go(let_go, code, stack.folder / "demo.log")
            keep.wait_for_a_signal()
    return code


@contextmanager
def _stack() -> Iterator[Stack]:
    """Give a stack with the demo's data; afterwards nothing of it is left, however it ends."""
    stack = Stack(Path(tempfile.mkdtemp(prefix="sinks-demo-")))
    try:
        say("1. Start the parts, and make the data.")
        stack.start(_dags_folder(stack.folder), _fill)
        yield stack
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        with step("Stopping everything") as line:
            stack.stop()
            shutil.rmtree(stack.folder)
            line.leave("stopped, and its files are removed")


def _dags_folder(beside: Path) -> Path:
    """Return a copy of the example DAGs: an act changes one."""
    folder = Path(__file__).parents[2] / "dags"
    if not folder.is_dir():
        raise LocalServiceError(
            "the example DAGs are not here", f"There is no {folder}.", "run it in a checkout"
        )
    return shutil.copytree(folder, beside / "dags", ignore=shutil.ignore_patterns("__pycache__"))


def _fill(stack: Stack, cancelled: Event) -> None:
    broker = stack.broker
    pageviews.create_topic(broker, QUIET_SOURCE)
    avro_act.fill(stack)
    with step("Data") as line:
        pageviews.create_topic(broker, SOURCE)
        with stack.postgres.connect() as connection:
            users = pageviews.fill_table(connection)
        pageviews.fill_topic(broker, SOURCE, cancelled, line.say)
        line.leave(f"{pageviews.ROWS:,} pageviews in {pageviews.PARTITIONS} partitions, {users:,} users")


def _leave_up(stack: Stack) -> None:
    airflow = stack.airflow
    say(f"\nEverything stays up.\n  Airflow  {airflow.url}  user {airflow.user}  password {airflow.password}")
    say(f"  Kafka    {stack.broker.admin_bootstrap}\n  registry {stack.registry.url}")
    say(f"  files    {stack.folder}\n  DAGs     {airflow.dags_folder}")
    say(f"To stop all of it and remove its files: kill {os.getpid()}")


def _fail(error: Exception) -> int:
    say(f"\nThe demo failed: {error}")
    return 1
