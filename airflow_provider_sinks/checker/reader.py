"""Reads one DAG file as Airflow's DAG processor would, and returns what it showed.

Runs in a process of its own for each file: see :mod:`.server`.
"""

from __future__ import annotations
import __future__

import ast
import importlib.machinery
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from airflow.sdk import DAG, Asset
from airflow.sdk.definitions._internal.contextmanager import DagContext
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_sinks.arguments import as_list, parse
from airflow_provider_sinks.checker.facts import (
    DagFacts,
    End,
    Failure,
    FileFacts,
    Place,
    SinkFacts,
    TaskFacts,
    TaskKind,
)
from airflow_provider_sinks.checker.recorder import Recorder
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.broken import BrokenSinkOperator
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

_MODULE = "checked_dag_file"
_KINDS: dict[type, TaskKind] = {
    SubmitSinkJobOperator: TaskKind.SUBMIT,
    CheckTopicsSensor: TaskKind.CHECK,
    ValidateConnectionOperator: TaskKind.VALIDATE,
}


def read_file(file: Path, recorder: Recorder) -> FileFacts:
    """Run a file and look at the DAGs that it leaves."""
    started = _clock()
    errors: list[BaseException] = []
    try:
        dags = list(_dags_of(_run(file, errors)))
        seconds = _clock() - started
        recorder.finish()
        facts = tuple(sorted((_dag_facts(dag, recorder) for dag in dags), key=lambda dag: dag.dag_id))
        tasks = tuple(task for dag in dags for task in _tasks_of(dag, recorder))
    except BaseException as error:  # noqa: BLE001  a file may raise anything, SystemExit too
        seconds = _clock() - started
        failures = _failures([*errors, error], recorder, file)
        return FileFacts(str(file), End.FAILED, seconds, failures, tuple(recorder.reaches))
    failures = _failures(errors, recorder, file)
    end = End.FAILED if failures else End.READ
    return FileFacts(str(file), end, seconds, failures, tuple(recorder.reaches), facts, tasks)


def _clock() -> float:
    """Return seconds that pass while this process works or sleeps, not while a processor is busy."""
    try:
        waited_ns = int(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):  # only Linux tells
        waited_ns = 0
    return time.perf_counter() - waited_ns / 1e9


def _run(file: Path, errors: list[BaseException]) -> ModuleType:
    """Run a file statement by statement, on over those that one of our own errors ends.

    What such a statement would have named is missing from then on: an error where such a name is used is only
    an echo. Any other error ends the file.

    :param errors: takes our own errors.
    """
    DagContext.autoregistered_dags.clear()
    DagContext.current_autoregister_module_name = _MODULE
    loader = importlib.machinery.SourceFileLoader(_MODULE, str(file))
    spec = importlib.util.spec_from_loader(_MODULE, loader)
    assert spec is not None  # noqa: S101  a loader was given
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    missing: set[str] = set()
    for node, statement in _statements(loader.get_data(str(file)), file):
        try:
            exec(statement, vars(module))  # noqa: S102  it is what reading a DAG file means
        except ConfigurationError as error:
            errors.append(error)
            missing |= _names(node, ast.Store)
        except Exception:
            if missing.isdisjoint(_names(node, ast.Load)):
                raise
            missing |= _names(node, ast.Store)
    return module


def _names(node: ast.stmt, use: type[ast.expr_context]) -> set[str]:
    """Return the names that a statement uses so."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, use)}


def _statements(source: bytes, file: Path) -> Iterator[tuple[ast.stmt, CodeType]]:
    """Compile each statement of a file as it would be compiled among the others.

    :raises SyntaxError: before the first of them runs.
    """
    tree = ast.parse(source, str(file))
    compile(tree, str(file), "exec", dont_inherit=True)
    futures = [
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for name in node.names
    ]
    flags = sum({getattr(__future__, name).compiler_flag for name in futures})
    for number, node in enumerate(tree.body):
        if number == 0 or not _is_text(node):  # any other text that stands alone would become the docstring
            yield node, compile(ast.Module([node], []), str(file), "exec", flags, dont_inherit=True)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _dags_of(module: ModuleType) -> Iterator[DAG]:
    """Return the DAGs that Airflow would find: those with a name in the module, and those of ``with DAG``."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, DAG)}
    found.update({id(dag): dag for dag, _ in DagContext.autoregistered_dags})
    for dag in sorted(found.values(), key=lambda dag: dag.dag_id):
        dag.fileloc = str(module.__file__)
        dag.relative_fileloc = Path(dag.fileloc).name
        yield dag


def _dag_facts(dag: DAG, recorder: Recorder) -> DagFacts:
    place = recorder.made_at(dag)
    try:
        dag.check_cycle()
        dag.validate()
        text = json.dumps(DagSerialization.to_dict(dag), sort_keys=True)
    except Exception as error:  # noqa: BLE001  each is a reason for which Airflow would not take the DAG
        return DagFacts(dag.dag_id, place, flaw=_first_line(error))
    said = (task.error.problems for task in dag.tasks if isinstance(task, BrokenSinkOperator))
    return DagFacts(dag.dag_id, place, text, broken=next(said, ()))


def _tasks_of(dag: DAG, recorder: Recorder) -> Iterator[TaskFacts]:
    for task in dag.tasks:
        cls = task.operator_class if isinstance(task, MappedOperator) else type(task)
        kind = next((kind for known, kind in _KINDS.items() if issubclass(cls, known)), None)
        if kind is not None:
            yield _task_facts(dag, task, kind, recorder)


def _task_facts(dag: DAG, task: Any, kind: TaskKind, recorder: Recorder) -> TaskFacts:
    place = recorder.made_at(task)
    mapped = isinstance(task, MappedOperator)
    given = task.partial_kwargs if mapped else vars(task)
    origin = recorder.origin_of(task)
    return TaskFacts(
        dag.dag_id,
        task.task_id,
        kind,
        place,
        tuple(
            SinkFacts(recorder.declared_at(sink, place), sink)
            for value in (_mapped_sinks(task) if mapped else [task.declared])
            for sink in _literal(value)
            if not recorder.stands_in(sink)
        ),
        None if origin is None else (str(origin.file.resolve()), origin.sink),
        given.get("deferrable") is True,
        given.get("deploy_mode" if mapped else "_deploy_mode"),
        tuple(sorted(asset.name for asset in as_list(given.get("outlets")) if isinstance(asset, Asset))),
    )


def _mapped_sinks(task: MappedOperator) -> Iterator[Any]:
    """Return what a mapped task is mapped over, as far as it stands in the file."""
    expanded = task.expand_input.value
    if isinstance(expanded, Mapping):
        listed = expanded.get("sink", [task.partial_kwargs.get("sink")])
        yield from listed if isinstance(listed, list | tuple) else ()
    elif isinstance(expanded, list | tuple):
        yield from (entry.get("sink") for entry in expanded if isinstance(entry, Mapping))


def _literal(sink: Any) -> Iterator[Any]:
    """Yield a sink that stands there as it is; templates and outputs of other tasks are not known yet."""
    if not isinstance(sink, SinkSpec | Mapping):
        return
    try:
        text = sink.to_json() if isinstance(sink, SinkSpec) else json.dumps(dict(sink))
    except TypeError:
        return
    if "{{" not in text and "{%" not in text:
        yield json.loads(_canonical(sink, text))


def _canonical(sink: SinkSpec | Mapping[str, Any], otherwise: str) -> str:
    try:
        return parse(sink).to_json()
    except ConfigurationError:
        return otherwise


def _failures(errors: Iterable[BaseException], recorder: Recorder, file: Path) -> tuple[Failure, ...]:
    """Return the mistakes of a file: those of its sinks, which did not end anything, and the others."""
    of_sinks = (
        Failure(at, type(error).__name__, error.primary, error.problems) for at, error in recorder.errors
    )
    return (*of_sinks, *(_failure(error, recorder, Place(str(file))) for error in errors))


def _failure(error: BaseException, recorder: Recorder, file: Place) -> Failure:
    lines = [
        Place(frame.filename, frame.lineno or 0)
        for frame in traceback.extract_tb(error.__traceback__)
        if recorder.is_inside(frame.filename)
    ]
    place = lines[-1] if lines else file
    if isinstance(error, SyntaxError) and error.filename and recorder.is_inside(error.filename):
        place = Place(error.filename, error.lineno or 0)
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    text = error.primary if isinstance(error, ConfigurationError) else _first_line(error)
    return Failure(place, type(error).__name__, text, problems)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
