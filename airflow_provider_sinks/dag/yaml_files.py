"""DAGs of the sinks that stand in YAML files: one DAG for each sink, and no Python for it.

globals().update(dags_from_yaml(Path(__file__).with_name("sinks.yaml")))

Airflow knows an import error of a Python file only, and takes all DAGs of that file away with it, those that
run as well. So what is wrong in the YAML is no import error: the sink gets a DAG that says so, and the others
stay as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from airflow.sdk import DAG

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.sink_file import FILES_NOT_VALID, SinkEntry, SinkFile, read_sinks
from airflow_provider_sinks.dag.broken import Broken, broken_dag
from airflow_provider_sinks.dag.factory import check_sink_dag_arguments, sink_dag

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Origin:
    """Where the sink stands whose DAG is being made."""

    file: Path
    sink: str


ORIGIN: ContextVar[Origin | None] = ContextVar("origin of a sink", default=None)
"""Set while the DAG of a YAML sink is made: the DAG's Python knows only the line of the loop."""


class BrokenSinkWarning(UserWarning):
    """A sink in a YAML file is not valid; its DAG says so too."""


def dags_from_yaml(
    path: str | Path, *, on_error: Literal["warn", "raise"] = "warn", **options: Any
) -> dict[str, DAG]:
    """Return one DAG for each sink of a YAML file, or of all YAML files of a folder, by DAG id.

    What a sink says under its key ``dag`` wins over the options. A sink that is not valid becomes a warning,
    and a DAG of the same id that says what is wrong and fails; the others are as they would be without it.

    :param path: the file or folder.
    :param on_error: ``raise`` lets one problem be the error of all, for tests; Airflow then lists none.
    :param options: what :func:`sink_dag` takes, for every DAG.
    :raises ConfigurationError: the path or an option is wrong; by ``on_error="raise"`` also the problems of
        all files.
    """
    _check(on_error, options)
    files = [(file, _read(file)) for file in _files(Path(path))]
    made, broken = _made(files, options)
    if broken and on_error == "raise":
        problems = dict.fromkeys(problem for one in broken for problem in one.problems)
        raise ConfigurationError(FILES_NOT_VALID, list(problems))
    for one in (told := list(_joined(broken, made))):
        warnings.warn(str(one.error), BrokenSinkWarning, stacklevel=2)
    return {**made, **{one.dag_id: broken_dag(one, options) for one in told}}


def _made(
    files: list[tuple[Path, SinkFile]], options: Mapping[str, Any]
) -> tuple[dict[str, DAG], list[Broken]]:
    """Return the DAGs of what is valid, by id, and what is not valid."""
    twins, dags, broken = _twins(files), dict[str, DAG](), list[Broken]()
    for file, found in files:
        broken += _broken(file, found)
        for entry in found.sinks:
            name = entry.spec.name
            if name in twins:
                broken.append(Broken(file.name, name, twins[name], entry.spec.model_dump(mode="json")))
                continue
            try:
                dag = _dag(file, entry, options)
            except ConfigurationError as error:
                problems = tuple(_in(file, problem, f"sinks[{name}].dag") for problem in error.problems)
                broken.append(Broken(file.name, name, problems, entry.spec.model_dump(mode="json")))
            else:
                dags[dag.dag_id] = dag
    return dags, broken


def _dag(file: Path, entry: SinkEntry, options: Mapping[str, Any]) -> DAG:
    """Make the DAG of a sink, as Airflow will take it.

    :raises ConfigurationError: Airflow would not take it, by what the file says of the DAG.
    """
    own = entry.dag.model_dump(exclude_unset=True)
    try:
        with _made_from(Origin(file, entry.spec.name)):
            dag = sink_dag(entry.spec, **{**options, **own})
            dag.validate()
    except ConfigurationError:
        raise
    except Exception as error:  # Airflow raises of many kinds
        if not own:
            raise  # nothing in the file is about the DAG: the options are wrong, for all of them
        what = f"Airflow does not take it: {error}"
        raise ConfigurationError("the DAG is not valid", [Problem("", what)]) from error
    return dag


def _broken(file: Path, found: SinkFile) -> Iterator[Broken]:
    for entry in found.broken:
        yield Broken(file.name, entry.name, _all_in(file, entry.problems), entry.data)
    told = {problem for entry in found.broken for problem in entry.problems}
    if left := tuple(problem for problem in found.problems if problem not in told):
        yield Broken(file.name, None, _all_in(file, left))


def _joined(broken: list[Broken], made: Mapping[str, DAG]) -> Iterator[Broken]:
    """Return one for each DAG: of a file as a whole, also what cannot have the sink's own name."""
    by_id: dict[str, Broken] = {}
    for one in broken:
        free = Broken(one.file, None, one.problems) if one.sink in made else one
        before = by_id.get(free.dag_id)
        problems = dict.fromkeys([*(before.problems if before else ()), *free.problems])
        by_id[free.dag_id] = Broken(free.file, free.sink, tuple(problems), free.data)
    yield from by_id.values()


def _twins(files: list[tuple[Path, SinkFile]]) -> dict[str, tuple[Problem, ...]]:
    """Return the problems of sinks whose name stands twice: nobody knows which of the two is meant."""
    twins: dict[str, tuple[Problem, ...]] = {}
    first: dict[str, Path] = {}
    for file, found in files:
        twins |= {name: (_in(file, problem),) for name, problem in found.twins.items()}
        for name in {entry.spec.name: None for entry in found.sinks}:
            if first.setdefault(name, file) != file:
                what = f"stands in {first[name].name} and in {file.name}"
                twins[name] = (
                    *twins.get(name, ()), Problem(name, what, "sinks must have different names"),
                )  # fmt: skip
    return twins


def _all_in(file: Path, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(_in(file, problem) for problem in problems)


def _in(file: Path, problem: Problem, below: str = "") -> Problem:
    where = ".".join(step for step in (below, problem.where) if step)
    return Problem(f"{file.name}: {where}".rstrip(": "), problem.what, problem.hint)


def _read(file: Path) -> SinkFile:
    try:
        return read_sinks(file.read_bytes())
    except OSError as error:
        return SinkFile(problems=(Problem("", f"cannot be read: {error.strerror}"),))


def _check(on_error: str, options: Mapping[str, Any]) -> None:
    if on_error not in ("warn", "raise"):
        problem = Problem("on_error", f"is {on_error!r}", '"warn" or "raise"')
        raise ConfigurationError("dags_from_yaml() cannot take some of its arguments", [problem])
    check_sink_dag_arguments("dags_from_yaml()", options)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and not file.is_dir())
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
