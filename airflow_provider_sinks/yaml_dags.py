"""DAGs of the sinks that stand in YAML files: one DAG for each sink, and no Python for it.

globals().update(dags_from_yaml(Path(__file__).with_name("sinks.yaml")))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.sink_file import FILES_NOT_VALID, SinkEntry, load_entries
from airflow_provider_sinks.dag_factory import sink_dag

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Origin:
    """Where the sink stands whose DAG is being made."""

    file: Path
    sink: str


ORIGIN: ContextVar[Origin | None] = ContextVar("origin of a sink", default=None)
"""Set while the DAG of a YAML sink is made: the DAG's Python knows only the line of the loop."""


def dags_from_yaml(path: str | Path, **options: Any) -> dict[str, DAG]:
    """Return one DAG for each sink of a YAML file, or of all YAML files of a folder, by DAG id.

    What a sink says under its key ``dag`` wins over the options.

    :param path: the file or folder.
    :param options: what :func:`sink_dag` takes, for every DAG.
    :raises ConfigurationError: with the problems of all files at once.
    """
    dags: dict[str, DAG] = {}
    for file, entry in _read(_files(Path(path))):
        with _made_from(Origin(file, entry.spec.name)):
            dag = sink_dag(entry.spec, **{**options, **entry.dag.model_dump(exclude_unset=True)})
        dags[dag.dag_id] = dag
    return dags


def _read(files: list[Path]) -> list[tuple[Path, SinkEntry]]:
    found: list[tuple[Path, SinkEntry]] = []
    problems: list[Problem] = []
    for file in files:
        try:
            found += [(file, entry) for entry in load_entries(file.read_text(encoding="utf-8"))]
        except ConfigurationError as error:
            problems += [
                Problem(f"{file.name}: {problem.where}".rstrip(": "), problem.what, problem.hint)
                for problem in error.problems
            ]
    problems += _twice(found)
    if problems:
        raise ConfigurationError(FILES_NOT_VALID, problems)
    return found


def _twice(found: list[tuple[Path, SinkEntry]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for file, entry in found:
        name = entry.spec.name
        if first.setdefault(name, file) != file:
            what = f"stands in {first[name].name} and in {file.name}"
            yield Problem(name, what, "sinks must have different names")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    if not path.is_file():
        problem = Problem("path", "is neither a file nor a folder", "Path(__file__).with_name(...)")
        raise ConfigurationError(f"{path} cannot be read", [problem])
    return [path]


@contextmanager
def _made_from(origin: Origin) -> Iterator[None]:
    token = ORIGIN.set(origin)
    try:
        yield
    finally:
        ORIGIN.reset(token)
