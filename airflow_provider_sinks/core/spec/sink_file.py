"""Reads sinks from YAML: strictly, with all problems of all sinks at once, and each by itself.

What is wrong with one sink says nothing about its neighbours: they are read as if it were not there.

>>> load_yaml("sinks: [{name: mirror, source: prod/clicks, target: prod/clicks-copy}]")[0].name
'mirror'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec.dag_options import DagOptions
from airflow_provider_sinks.core.spec.fields import NAME_PATTERN
from airflow_provider_sinks.core.spec.problems import problems_of
from airflow_provider_sinks.core.spec.safe_yaml import UnreadableError, decoded, read_yaml
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.yaml_lines import YamlLines

DAG_KEY = "dag"
FILES_NOT_VALID = "the sinks of YAML files are not valid"
"""What is said of several files at once."""

_NAMED = re.compile(r"(?:^|[\s{,])[\"']?name[\"']?\s*:\s*[\"']?([A-Za-z0-9_-]{1,100})[\"']?\s*(?=[,}#]|$)")


@dataclass(frozen=True)
class SinkEntry:
    """One sink of a file, and what the file says about its DAG under the key ``dag``.

    :param index: its place in the list, from 0.
    """

    spec: SinkSpec
    dag: DagOptions
    index: int = 0


@dataclass(frozen=True)
class BrokenEntry:
    """An entry of a file that is no sink.

    :param name: as far as it can be read.
    :param data: what stands there; empty where nothing can be read but the name.
    """

    name: str | None
    problems: tuple[Problem, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkFile:
    """What stands in one YAML file of sinks.

    :param sinks: the valid ones; of two with one name both.
    :param broken: the others.
    :param problems: those of the file as a whole.
    :param twins: one for each sink whose name another one of the file has before it, by name.
    """

    sinks: tuple[SinkEntry, ...] = ()
    broken: tuple[BrokenEntry, ...] = ()
    problems: tuple[Problem, ...] = ()
    twins: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with it."""
        of_entries = (problem for entry in self.broken for problem in entry.problems)
        # An unreadable text is the one problem of each sink in it.
        return tuple(dict.fromkeys([*self.problems, *of_entries, *self.twins.values()]))


def load_yaml(text: str) -> tuple[SinkSpec, ...]:
    """Read the sinks of one YAML document, a mapping with the key ``sinks``.

    :raises ConfigurationError: with the problems of all sinks at once.
    """
    return tuple(entry.spec for entry in load_entries(text))


def load_entries(text: str) -> tuple[SinkEntry, ...]:
    """Read the sinks of one YAML document with what it says about their DAGs.

    :raises ConfigurationError: with the problems of all sinks at once.
    """
    found = read_sinks(text.encode(errors="surrogatepass"))
    if found.all_problems:
        raise _invalid(found.all_problems)
    return found.sinks


def read_sinks(data: bytes) -> SinkFile:
    """Read a file of sinks: those that are valid, and what is wrong with the others. Never raises.

    Of a text that is no YAML no sink is taken, not even one that seems whole: what was meant is not known.
    Its sinks are told by name, so that nobody takes them for deleted.
    """
    try:
        text = decoded(data)
        document = read_yaml(text)
    except UnreadableError as error:
        names = _names_in(data.decode(errors="replace"))
        broken = tuple(BrokenEntry(name, (error.problem,)) for name in names)
        return SinkFile(broken=broken, problems=(error.problem,))
    return _sinks_of(document, text)


def _sinks_of(document: Any, text: str) -> SinkFile:
    if not isinstance(document, dict) or "sinks" not in document:
        hint = nearest("sinks", [str(key) for key in document]) if isinstance(document, dict) else ""
        shown = hint and f"instead of {hint[13:-1]}"
        problem = Problem("", "must be a mapping with the key sinks", shown)
        return SinkFile(
            broken=tuple(BrokenEntry(name, (problem,)) for name in _names_in(text)), problems=(problem,)
        )
    problems = tuple(Problem(str(key), "is not known", "sinks") for key in document if key != "sinks")
    listed = document["sinks"]
    if not isinstance(listed, list) or not listed:
        return SinkFile(problems=(*problems, Problem("sinks", "must be a list of sinks")))
    judged = [_judged(entry, index) for index, entry in enumerate(listed)]
    sinks = tuple(entry for entry in judged if isinstance(entry, SinkEntry))
    broken = tuple(entry for entry in judged if isinstance(entry, BrokenEntry))
    return SinkFile(sinks, broken, problems, dict(_twins(sinks, text)))


def _judged(data: Any, index: int) -> SinkEntry | BrokenEntry:
    try:
        spec, dag = _entry(data)
    except ConfigurationError as error:
        shown = data if isinstance(data, dict) else {}
        name = shown.get("name")
        known = name if isinstance(name, str) and re.match(NAME_PATTERN, name) else None
        return BrokenEntry(known, tuple(_placed(problem, data, index) for problem in error.problems), shown)
    return SinkEntry(spec, dag, index)


def _entry(data: Any) -> tuple[SinkSpec, DagOptions]:
    """Read one entry: a sink, and what is said about its DAG.

    :raises ConfigurationError: with the problems of both.
    """
    if not isinstance(data, Mapping):
        return SinkSpec.parse(data), DagOptions()
    sink, problems, dag = {key: value for key, value in data.items() if key != DAG_KEY}, [], DagOptions()
    try:
        dag = DagOptions.model_validate(data.get(DAG_KEY, dag))
    except ValidationError as error:
        problems += [_below_dag(problem) for problem in problems_of(error, DagOptions)]
    try:
        spec = SinkSpec.parse(sink, reads_files=True)
    except ConfigurationError as error:
        raise _invalid([*error.problems, *problems]) from None
    if problems:
        raise _invalid(problems)
    return spec, dag


def _below_dag(problem: Problem) -> Problem:
    return Problem(f"{DAG_KEY}.{problem.where}".rstrip("."), problem.what, problem.hint)


def _placed(problem: Problem, entry: Any, index: int) -> Problem:
    name = entry.get("name") if isinstance(entry, dict) else None
    sink = f"sinks[{name if isinstance(name, str) else index}]"
    return Problem(f"{sink}.{problem.where}" if problem.where else sink, problem.what, problem.hint)


def _twins(sinks: Sequence[SinkEntry], text: str) -> Iterator[tuple[str, Problem]]:
    """Find two sinks of one name; which of them is meant nobody can tell."""
    counts = Counter(entry.spec.name for entry in sinks)
    twice = [name for name, count in counts.items() if count > 1]
    lines = YamlLines.of(text if twice else "")
    for name in twice:
        first, second = [lines.of_entry(entry.index) for entry in sinks if entry.spec.name == name][:2]
        what = f'sink "{name}" stands twice, first in line {first}'
        yield name, Problem(f"line {second}", what, "give one of them another name, or leave it out")


def _names_in(text: str) -> list[str]:
    """Return the names of sinks in a text that cannot be read."""
    shown = (line.partition(" #")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
    return list(dict.fromkeys(name for line in shown for name in _NAMED.findall(line)))


def _invalid(problems: Sequence[Problem]) -> ConfigurationError:
    return ConfigurationError("the list of sinks is not valid", problems)
