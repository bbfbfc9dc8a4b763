"""Rules about sinks: each is valid wherever it stands, and runs in one place only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_provider_sinks.checker.facts import Declared, FolderFacts, Place, TaskKind
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.rules.problems import finding_of


def of_yaml(facts: FolderFacts) -> Iterator[Finding]:
    """Find a YAML file with something that is no sink; no Python has to read it."""
    for file in facts.yaml:
        for place, problem in file.problems:
            yield finding_of(place, problem)


def of_stand_ins(facts: FolderFacts) -> Iterator[Finding]:
    """Find a sink of a YAML file that is valid, but whose DAG Airflow would not take as the file has it."""
    listed = [(spec.name, place) for file in facts.yaml for place, spec in file.sinks]
    counts, places = Counter(name for name, _ in listed), dict(listed)
    for dag in (dag for file in facts.files for dag in file.dags):
        for problem in dag.broken if counts[dag.dag_id] == 1 else ():
            yield finding_of(places[dag.dag_id], problem)


def of_tasks(facts: FolderFacts) -> Iterator[Finding]:
    """Find a task whose literal sink is not valid: it would fail when it runs, not when it is read."""
    for task in facts.tasks:
        for sink in task.sinks:
            about = f'task "{task.task_id}" of DAG "{task.dag_id}"'
            for problem in sink.judged[1]:
                yield finding_of(sink.place, problem, about)


def unlisted(facts: FolderFacts) -> Iterator[Finding]:
    """Find a mapped task whose sinks are no assets of it: nobody finds them when a connection is altered."""
    for task in facts.tasks:
        specs = [sink.judged[0] for sink in task.sinks if task.kind is TaskKind.SUBMIT]
        names = [spec.name for spec in specs if spec and f"sink:{spec.name}" not in task.outlets]
        if names:
            known = ", ".join(f'"{name}"' for name in names)
            what = (
                f'task "{task.task_id}" of DAG "{task.dag_id}" runs sinks that Airflow does not know: {known}'
            )
            yield Finding(
                task.place, "unlisted-sink", what, "name their assets: partial(outlets=sink_assets(sinks))"
            )


def duplicates(facts: FolderFacts) -> Iterator[Finding]:
    """Find two sinks of one name, or one sink that two tasks run: each start would end the other's."""
    first: dict[str, Declared] = {}
    for sink in facts.sinks:
        before = first.setdefault(sink.spec.name, sink)
        if before is not sink:
            place, other = _apart(sink, before)
            what = f'sink "{sink.spec.name}" is run from {other} too: each start would fence the other'
            yield Finding(place, "duplicate-sink", what, "give one of them another name, or run it once")


def _apart(sink: Declared, other: Declared) -> tuple[Place, Place]:
    """Return two places to name: where the sinks are declared, or where one declaration is run."""
    if sink.place != other.place or sink.task is None or other.task is None:
        return sink.place, other.place
    return sink.task.place, other.task.place
