"""Rules about a Python file as such: it can be read, soon, and asks nobody anything while it is read."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.checker.facts import End, Failure, FileFacts, FolderFacts, Place, Reach, ReachKind
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.rules.problems import finding_of
from airflow_provider_sinks.core.spec.sink_file import FILES_NOT_VALID

_REMEDIES = {
    ReachKind.NETWORK: "ask inside of a task: files are read every few seconds, and in CI without network",
    ReachKind.CONNECTION: "name the connection by its id, and let the task look it up",
    ReachKind.VARIABLE: "use a template, {{ var.value.name }}, or read it inside of a task",
}


def import_errors(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that cannot be run, or whose process dies."""
    for file in facts.files:
        if file.end is End.DIED:
            what = "the process that read it died"
            yield Finding(file.slow_place, "import-error", what, "run the file with python to see why")
        for failure in file.failures:
            if not _told_elsewhere(failure, file, facts):
                yield from _failed(failure)


def hangs(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that does not come to its end."""
    for file in facts.files:
        if file.end is End.HUNG:
            what = f"was not read after {facts.limits.hang_seconds:g} s, and was ended"
            yield Finding(file.slow_place, "hangs", what, "do not wait while DAGs are read; wait in a task")


def slow(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that takes longer than the limit, both times."""
    again = {file.file: file.seconds for file in facts.again}
    for file in facts.files:
        seconds = min(file.seconds, again.get(file.file, file.seconds))
        if file.end in (End.READ, End.FAILED) and seconds > facts.limits.parse_seconds:
            what = f"takes {seconds:.1f} s to read, more than {facts.limits.parse_seconds:g} s"
            remedy = "move imports and work into tasks, or raise the limit by --parse-seconds"
            yield Finding(file.slow_place, "slow", what, remedy)


def network(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that asks for the network while it is read."""
    for reach in _reaches(facts, ReachKind.NETWORK):
        yield _reached(reach, f"asks for the network while it is read ({reach.what})")


def connections(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that asks Airflow for a connection while it is read."""
    for reach in _reaches(facts, ReachKind.CONNECTION):
        yield _reached(reach, f'asks for connection "{reach.what}" while it is read')


def variables(facts: FolderFacts) -> Iterator[Finding]:
    """Find a file that asks Airflow for a Variable while it is read."""
    for reach in _reaches(facts, ReachKind.VARIABLE):
        yield _reached(reach, f'asks for Variable "{reach.what}" while it is read')


def _reaches(facts: FolderFacts, kind: ReachKind) -> Iterator[Reach]:
    """Return one reach for each place: a name is looked up before it is connected to."""
    seen: set[Place] = set()
    for reach in (reach for file in facts.files for reach in file.reaches if reach.kind is kind):
        if reach.place not in seen:
            seen.add(reach.place)
            yield reach


def _reached(reach: Reach, what: str) -> Finding:
    return Finding(reach.place, str(reach.kind), what, _REMEDIES[reach.kind])


def _told_elsewhere(failure: Failure, file: FileFacts, facts: FolderFacts) -> bool:
    """Tell whether another rule names the cause: what was asked for, or the YAML file."""
    asked = {reach.place for reach in file.reaches}
    by_yaml = any(yaml.problems for yaml in facts.yaml) or _yaml_twice(facts)
    return failure.place in asked or (failure.text == FILES_NOT_VALID and by_yaml)


def _yaml_twice(facts: FolderFacts) -> bool:
    names = [spec.name for file in facts.yaml for _, spec in file.sinks]
    return len(names) > len(set(names))


def _failed(failure: Failure) -> Iterator[Finding]:
    for problem in failure.problems:
        yield finding_of(failure.place, problem, failure.text.removesuffix(" is not valid"))
    if not failure.problems:
        what = f"{failure.kind}: {failure.text}"
        yield Finding(failure.place, "import-error", what, _remedy_of(failure.kind))


def _remedy_of(kind: str) -> str:
    if kind == "SyntaxError":
        return "mend the line; Python cannot read it"
    if kind in ("ModuleNotFoundError", "ImportError"):
        return "install it where DAGs are read, put its folder on PYTHONPATH, or import it inside of the task"
    return "mend the line; Airflow would not show the DAGs of this file"
