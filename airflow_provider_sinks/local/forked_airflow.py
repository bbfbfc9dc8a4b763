"""The programs of an Airflow as forks of one process, which has imported what all of them import.

    python -m airflow_provider_sinks.local.forked_airflow    # in the folder that takes their logs

Each program imports some thousand modules before it does anything, and so does ``airflow db migrate``: that
is most of the processor time of their start. Tasks are forks of the scheduler, and DAG files are read in
forks of the DAG processor, so they have ours as well.

One program that ends ends the others, and so does a SIGTERM; what they have started themselves is left to
whoever started us, and ends the whole session.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from airflow_provider_sinks.local.processes import tail

COMPONENTS = ("api-server", "dag-processor", "scheduler", "triggerer")
_NEEDED_AT_ONCE = ("airflow.cli.cli_parser", "airflow.models.dagbag", "airflow.providers_manager")
_NEEDED_SOON = (
    "airflow.api_fastapi.core_api.app",
    "airflow.api_fastapi.core_api.routes.public",
    "airflow.api_fastapi.core_api.routes.ui",
    "airflow.api_fastapi.execution_api.routes",
    "airflow.jobs.scheduler_job_runner",
    "airflow.executors.local_executor",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.dag_processing.manager",
    "airflow_provider_sinks.dag.factory",
    "airflow_provider_sinks.dag.yaml_files",
    "airflow_provider_sinks.forms",
    "confluent_kafka.admin",
    "psycopg",
)


def main() -> int:
    """Make the database's tables, run the programs, and return 1 when one of them has ended."""
    _import(_NEEDED_AT_ONCE)
    migration = _fork("db", "migrate")
    _import(_NEEDED_SOON)
    _, status = os.waitpid(migration, 0)
    if status:
        return _report("db", status)
    gc.freeze()  # no collection in a fork looks at what was imported here
    return _run_until_one_ends({_fork(name): name for name in COMPONENTS})


def _run_until_one_ends(programs: dict[int, str]) -> int:
    def end_all(*_: object) -> None:
        for pid in programs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end_all)
    ended, status = os.wait()
    code = _report(programs.pop(ended), status)
    end_all()
    while programs:
        programs.pop(os.wait()[0])
    return code


def log_of(folder: Path, program: str) -> Path:
    """Return the log of one program."""
    return folder / f"airflow-{program}.log"


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)


def _fork(*arguments: str) -> int:
    """Run an ``airflow`` command in a fork and return its process id; in the fork it does not return."""
    pid = os.fork()
    if not pid:
        _become(arguments)
    return pid


def _become(arguments: Sequence[str]) -> NoReturn:
    """Go on as ``python -m airflow`` would, with a log of our own."""
    with log_of(Path(), arguments[0]).open("ab") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    sys.argv = ["airflow", *arguments]
    runpy.run_module("airflow", run_name="__main__")
    sys.exit(0)


def _report(program: str, status: int) -> int:
    sys.stdout.write(f"airflow {program} ended ({os.waitstatus_to_exitcode(status)})\n")
    sys.stdout.write(f"{tail(log_of(Path(), program))}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
