"""The processes of a running job, told apart so that one kind can be killed."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import time
from collections.abc import Iterator

import psutil

from airflow_provider_sinks.local.processes import session_members

_LOOK_SECONDS = 0.1


class Part(enum.Enum):
    """What can be killed."""

    DRIVER = "driver"  # the JVM, its Python, and every worker: a machine that loses power
    JVM = "jvm"  # the JVM alone; the Python processes that it fed live on for a moment
    EXECUTOR = "executor"  # one executor of a local-cluster
    WORKER = "worker"  # one Python worker, forked by Spark's daemon
    BACKEND = "backend"  # of Postgres: the process of one connection
    SERVER = "server"  # Postgres: the process that all others of it are children of


def kill_one(session: int, part: Part) -> bool:
    """SIGKILL one process of a kind that is at work; say whether there was one.

    :param session: the leader of the job's session.
    """
    for process in _at_work(session, part):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(process.pid, signal.SIGKILL)
            return True
    return False


def jvm_of(session: int) -> psutil.Process:
    """Return the driver's JVM."""
    return _members(session, "org.apache.spark.deploy.SparkSubmit")[0]


def _at_work(session: int, part: Part) -> Iterator[psutil.Process]:
    """Yield processes of a kind; executors and workers only if they handle rows at this moment."""
    if part is Part.JVM:
        yield jvm_of(session)
        return
    for worker in _busy_workers(session):
        yield worker if part is Part.WORKER else _executor_of(worker)


def _busy_workers(session: int) -> list[psutil.Process]:
    """Return the Python workers whose main thread woke up within a moment: the others wait for a task."""
    daemons = _members(session, ".streaming.daemon")
    workers = [worker for daemon in daemons for worker in _children(daemon)]
    before = {worker: _wakes(worker) for worker in workers}
    time.sleep(_LOOK_SECONDS)
    return [worker for worker in workers if _wakes(worker) > before[worker]]


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def _wakes(process: psutil.Process) -> int:
    try:
        return int(process.num_ctx_switches().voluntary)
    except psutil.NoSuchProcess:
        return 0


def _executor_of(worker: psutil.Process) -> psutil.Process:
    return next(
        parent for parent in worker.parents() if "CoarseGrainedExecutorBackend" in " ".join(parent.cmdline())
    )


def _members(session: int, word: str) -> list[psutil.Process]:
    """Return the processes of a session whose command line holds a word."""
    found = []
    for pid in session_members(session):
        try:
            process = psutil.Process(pid)
            if word in " ".join(process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
