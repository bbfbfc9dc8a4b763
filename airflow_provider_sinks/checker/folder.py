"""Gathers the facts of a folder: its Python files by two servers side by side, its YAML files here."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from airflow_provider_sinks.checker.facts import FILE_FACTS, FileFacts, FolderFacts, Limits
from airflow_provider_sinks.checker.yaml_facts import yaml_facts
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError

_HASH_SEEDS = ("1", "2")
"""Two processes that order sets differently, so that a DAG made from a set shows."""

_NOT_HANDED_ON = (
    "AIRFLOW_CONN_",
    "AIRFLOW_VAR_",
    "AIRFLOW__SECRETS__",
    "AIRFLOW__WORKERS__SECRETS",
    "AIRFLOW__DATABASE__",
    "AIRFLOW_HOME",
)
_LOOKUPS = "airflow_provider_sinks.checker.recorder.RecordedLookups"
_LAST_LINES = 20


def gather(folder: Path, limits: Limits) -> FolderFacts:
    """Read everything in a folder.

    :raises ConfigurationError: there is no such folder.
    :raises SinkError: Airflow cannot be imported.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is not a folder", hint="name the folder with your DAGs")
    folder = folder.resolve()
    first, again = _read_twice(folder, limits) if any(folder.rglob("*.py")) else ((), ())
    named = {Path(task.yaml[0]) for file in first for task in file.tasks if task.yaml}
    return FolderFacts(first, again, tuple(yaml_facts(folder, named)), limits)


def _read_twice(folder: Path, limits: Limits) -> tuple[tuple[FileFacts, ...], ...]:
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="sinks-check-home-"))
        servers = [stack.enter_context(_server(folder, limits, home, seed)) for seed in _HASH_SEEDS]
        with ThreadPoolExecutor() as pool:  # a server that nobody listens to would have to wait
            return tuple(pool.map(_facts, servers))


def _server(folder: Path, limits: Limits, home: str, seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "airflow_provider_sinks.checker.server"]
    error_log = (Path(home) / f"server-{seed}.log").open("w+", encoding="utf-8")
    server = subprocess.Popen(
        [*command, str(folder), str(limits.parse_seconds), str(limits.hang_seconds)],
        env=_environment(folder, str(Path(home) / seed), seed),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=error_log,
        text=True,
    )
    server.stderr = error_log
    return server


def _environment(folder: Path, home: str, seed: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_ON)}
    return {
        **kept,
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__SECRETS__BACKEND": _LOOKUPS,
        "AIRFLOW__WORKERS__SECRETS_BACKEND": _LOOKUPS,
        "PYTHONHASHSEED": seed,
    }


def _facts(server: subprocess.Popen[str]) -> tuple[FileFacts, ...]:
    facts = tuple(FILE_FACTS.validate_json(line) for line in server.stdout or ())
    if server.wait() != 0:
        raise SinkError("the DAG files cannot be read", _last_words(server), "can Airflow be imported here?")
    return facts


def _last_words(server: subprocess.Popen[str]) -> str:
    if server.stderr is None:
        return ""
    server.stderr.seek(0)
    return "".join(server.stderr.readlines()[-_LAST_LINES:])
