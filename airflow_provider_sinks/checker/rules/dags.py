"""Rules about DAGs: one of each name, taken by Airflow, and the same whenever they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from airflow_provider_sinks.checker.facts import DagFacts, End, FileFacts, FolderFacts, Place, TaskFacts
from airflow_provider_sinks.checker.finding import Finding

_STABLE = (
    "no now(), uuid4(), random and no order of a set in DAGs and tasks: each reading makes a new version"
)
_LONGEST = 60


def duplicates(facts: FolderFacts) -> Iterator[Finding]:
    """Find two DAGs with one id: Airflow shows one of them, today this one, tomorrow the other."""
    first: dict[str, DagFacts] = {}
    for dag in (dag for file in facts.files for dag in file.dags):
        before = first.setdefault(dag.dag_id, dag)
        if before is not dag:
            what = f'DAG "{dag.dag_id}" stands in {before.place} too'
            yield Finding(dag.place, "duplicate-dag", what, "give one of them another dag_id")


def not_taken(facts: FolderFacts) -> Iterator[Finding]:
    """Find a DAG that Airflow would refuse after it has read the file."""
    for dag in (dag for file in facts.files for dag in file.dags):
        if dag.flaw:
            what = f'Airflow does not take DAG "{dag.dag_id}": {dag.flaw}'
            yield Finding(dag.place, "not-a-dag", what, "mend the argument that it names")


def unstable(facts: FolderFacts) -> Iterator[Finding]:
    """Find a DAG that is another one each time its file is read."""
    again = {file.file: file for file in facts.again}
    for file in facts.files:
        other = again.get(file.file, file)
        if file.end is End.READ and other.end is End.READ:
            yield from _unstable_dags(file, other)


def deferrable(facts: FolderFacts) -> Iterator[Finding]:
    """Find a task that is to defer while its driver runs on the worker."""
    for task in facts.tasks:
        if task.deferrable and task.deploy_mode == "client":
            what = f"{_name(task)} cannot be deferrable in client mode: the driver is its own process"
            remedy = 'leave deferrable out, or deploy_mode="cluster"'
            yield Finding(task.place, "deferrable", what, remedy)


def _unstable_dags(file: FileFacts, other: FileFacts) -> Iterator[Finding]:
    texts = {dag.dag_id: dag.text for dag in other.dags}
    for dag in file.dags:
        if dag.dag_id not in texts:
            what = f'DAG "{dag.dag_id}" has another id when the file is read again'
            yield Finding(dag.place, "unstable-dag", what, "make the dag_id from what does not change")
        elif dag.text != texts[dag.dag_id]:
            where, what = difference(json.loads(dag.text), json.loads(texts[dag.dag_id]))
            task = _task_at(json.loads(dag.text), where)
            said = f'DAG "{dag.dag_id}" is another one when the file is read again: {_shown(where)} {what}'
            yield Finding(_place(file, dag, task), "unstable-dag", said, _STABLE)


def difference(
    first: Any, second: Any, path: tuple[str | int, ...] = ()
) -> tuple[tuple[str | int, ...], str]:
    """Return the first place at which two JSON values differ, and how."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        steps: list[str | int] = list(first)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        steps = list(range(len(first)))
    else:
        return path, f"was {_short(first)}, then {_short(second)}"
    for step in steps:
        if first[step] != second[step]:
            return difference(first[step], second[step], (*path, step))
    return path, "is the same"


def _task_at(dag: Any, path: tuple[str | int, ...]) -> str | None:
    """Return the id of the task that a path leads into."""
    if path[:2] == ("dag", "tasks") and len(path) > 2:
        return str(dag["dag"]["tasks"][path[2]]["__var"]["task_id"])
    return None


def _place(file: FileFacts, dag: DagFacts, task_id: str | None) -> Place:
    tasks = [task for task in file.tasks if (task.dag_id, task.task_id) == (dag.dag_id, task_id)]
    return tasks[0].place if tasks else dag.place


def _shown(path: tuple[str | int, ...]) -> str:
    steps = [str(step) for step in path if step not in ("__var", "__type", "dag")]
    return ".".join(steps) or "the DAG"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _name(task: TaskFacts) -> str:
    return f'task "{task.task_id}" of DAG "{task.dag_id}"'
