"""What SIGKILL and SIGSTOP do to a sink that writes into Postgres: no row missing, none doubled.

``FAULT_ROUNDS`` multiplies the kills; ``FAULT_SEED`` repeats a run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK
from tests.contract.played_sink import ROWS
from tests.contract.postgres_harness import options_of

KILLS = int(os.environ.get("FAULT_ROUNDS", "1"))
EPOCHS_PER_KILL = 10
_END_SECONDS = 120.0
EPOCHS = (2 * KILLS + 4) * EPOCHS_PER_KILL
"""More than a sink writes while this process is not looked after."""
SEED = int(os.environ.get("FAULT_SEED") or time.time())
UPSERT = {"mode": "upsert", "key": ["part", "at"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """One of its own: it is killed."""
    with Postgres.start(tmp_path_factory.mktemp("killed")) as server:
        yield server


class Sink:
    """A table, and the processes that write it one after the other."""

    def __init__(
        self, server: Postgres, schema: str, target: dict[str, Any], *, is_broken: bool = False
    ) -> None:
        self.server = server
        self.schema = schema
        self._given = {
            "parameters": dict(options_of(server).parameters),
            "schema": schema,
            "target": target,
            "epochs": EPOCHS,
            "is_broken": is_broken,
        }
        self._started: list[subprocess.Popen[str]] = []
        self._execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))

    def start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.played_sink"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._given))
        process.stdin.close()
        return process

    def finish(self) -> None:
        """Start it until it comes to its end; a server that is away is no reason to give up."""
        for _ in range(10):
            process = self.start()
            said = _said(process)
            if process.returncode == 0:
                return
            assert process.returncode == ExitCode.UNAVAILABLE, said
        pytest.fail(f"the sink does not come to its end: {said}")

    def differences(self) -> tuple[int, int]:
        """Return how many rows are missing, and how many there are too many."""
        name = sql.Identifier(self.schema, SINK)
        rows = self._execute(sql.SQL("SELECT part, at FROM {}").format(name))
        found = Counter(rows)
        expected = {(part, at) for part in (0, 1) for at in range(EPOCHS * ROWS)}
        assert set(found) <= expected
        return len(expected - set(found)), sum(count - 1 for count in found.values())

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def _execute(self, statement: sql.Composed) -> list[Any]:
        with self.server.connect() as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []


@pytest.fixture
def sinks(server: Postgres) -> Iterator[Any]:
    made: list[Sink] = []

    def make(name: str, target: dict[str, Any] | None = None, *, is_broken: bool = False) -> Sink:
        made.append(Sink(server, f"{name}{len(made)}", target or {}, is_broken=is_broken))
        return made[-1]

    yield make
    for sink in made:
        sink.end()


def follow(process: subprocess.Popen[str], epochs: int) -> None:
    """Return when a sink has done this many epochs, somewhere in the next one."""
    assert process.stdout is not None
    for _ in range(epochs):
        process.stdout.readline()
    time.sleep(random.uniform(0, 0.02))  # noqa: S311  no secret; a moment nobody chose


def some_epochs() -> int:
    return random.randint(1, EPOCHS_PER_KILL)  # noqa: S311  no secret


@pytest.fixture(autouse=True)
def _seed() -> None:
    print(f"FAULT_SEED={SEED}")  # noqa: T201  to repeat a failure
    random.seed(SEED)


@pytest.mark.parametrize("target", [{}, UPSERT], ids=["append", "upsert"])
def test_sigkill_of_the_sink(sinks: Any, target: dict[str, Any]) -> None:
    sink = sinks("sink_upsert" if target else "sink", target)
    for _ in range(KILLS):
        process = sink.start()
        follow(process, some_epochs())
        process.kill()
    sink.finish()
    assert sink.differences() == (0, 0)


def test_sigkill_of_a_backend(sinks: Any, server: Postgres) -> None:
    sink = sinks("backend")
    for _ in range(KILLS):
        process = sink.start()
        follow(process, some_epochs())
        _kill_a_backend(server)
        process.wait(timeout=_END_SECONDS)
        server._service.wait_until(server._answers, _END_SECONDS)
    sink.finish()
    assert sink.differences() == (0, 0)


def test_sigkill_of_the_postmaster(sinks: Any, server: Postgres) -> None:
    sink = sinks("postmaster")
    for _ in range(KILLS):
        process = sink.start()
        follow(process, some_epochs())
        server.kill()
        process.wait(timeout=_END_SECONDS)
        server.restart()
    sink.finish()
    assert sink.differences() == (0, 0)


def test_a_zombie_is_fenced(sinks: Any) -> None:
    sink = sinks("zombie")
    zombies = []
    for _ in range(KILLS):
        zombies.append(sink.start())
        follow(zombies[-1], some_epochs())
        zombies[-1].send_signal(signal.SIGSTOP)
    sink.finish()
    for zombie in zombies:
        zombie.send_signal(signal.SIGCONT)
        assert zombie.wait(timeout=_END_SECONDS) in (ExitCode.FENCED, ExitCode.UNAVAILABLE, ExitCode.FAILED)
    assert sink.differences() == (0, 0)


def test_without_the_compare_and_set_a_zombie_doubles_rows(sinks: Any) -> None:
    sink = sinks("broken", is_broken=True)
    zombie = sink.start()
    follow(zombie, 10)
    zombie.send_signal(signal.SIGSTOP)
    sink.finish()
    zombie.send_signal(signal.SIGCONT)
    zombie.wait(timeout=_END_SECONDS)
    missing, doubled = sink.differences()
    assert missing == 0
    assert doubled > 0


def _said(process: subprocess.Popen[str]) -> str:
    """Return what a process says against its end, when it has come to it."""
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read()
    said = process.stderr.read()
    process.wait()
    return said


def _kill_a_backend(server: Postgres) -> None:
    """Kill one that writes, if there is one; the server then restarts all others."""
    with contextlib.suppress(psycopg.Error), server.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'sinks/%/p%' ORDER BY random()"
        found = connection.execute(query).fetchone()
        for pid in found or ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
