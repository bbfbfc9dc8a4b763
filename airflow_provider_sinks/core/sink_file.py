"""Reads sinks from YAML: safely, strictly, and with all problems of all sinks at once.

``safe_load``'s rules, and stricter where YAML lets a mistake pass or an attack work: a key that stands twice
is an error, and so are more aliases, more nesting or more text than any list of sinks needs.

>>> load_yaml("sinks: [{name: mirror, source: prod/clicks, target: prod/clicks-copy}]")[0].name
'mirror'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from airflow_provider_sinks.core.dag_options import DagOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.problems import problems_of
from airflow_provider_sinks.core.spec import SinkSpec

LARGEST_BYTES = 1024 * 1024
MOST_ALIASES = 100
MOST_NODES = 100_000
DEEPEST = 30
DAG_KEY = "dag"
FILES_NOT_VALID = "the sinks of YAML files are not valid"
"""What is said of several files at once."""


@dataclass(frozen=True)
class SinkEntry:
    """One sink of a file, and what the file says about its DAG under the key ``dag``."""

    spec: SinkSpec
    dag: DagOptions


def load_yaml(text: str) -> tuple[SinkSpec, ...]:
    """Read the sinks of one YAML document, a mapping with the key ``sinks``.

    :raises ConfigurationError: with the problems of all sinks at once.
    """
    return tuple(entry.spec for entry in load_entries(text))


def load_entries(text: str) -> tuple[SinkEntry, ...]:
    """Read the sinks of one YAML document with what it says about their DAGs.

    :raises ConfigurationError: with the problems of all sinks at once.
    """
    entries, problems = read_entries(text)
    if problems:
        raise _invalid(problems)
    return entries


def read_entries(text: str) -> tuple[tuple[SinkEntry, ...], tuple[Problem, ...]]:
    """Return the sinks of one YAML document that are valid, and the problems of all others."""
    try:
        document = read_yaml(text)
    except ConfigurationError as error:
        return (), error.problems
    if not isinstance(document, dict) or "sinks" not in document:
        hint = nearest("sinks", [str(key) for key in document]) if isinstance(document, dict) else ""
        return (), (
            Problem("", "must be a mapping with the key sinks", hint and f"instead of {hint[13:-1]}"),
        )
    problems = [Problem(str(key), "is not known", "sinks") for key in document if key != "sinks"]
    listed = document["sinks"]
    if not isinstance(listed, list) or not listed:
        return (), (*problems, Problem("sinks", "must be a list of sinks"))
    entries = []
    for index, entry in enumerate(listed):
        try:
            entries.append(_entry(entry))
        except ConfigurationError as error:
            problems += [_placed(problem, entry, index) for problem in error.problems]
    return tuple(entries), (*problems, *_same_names(entries))


def read_yaml(text: str) -> Any:
    """Read one YAML document of plain values.

    :raises ConfigurationError: it is no YAML, has a key twice, or is larger than any list of sinks.
    """
    if len(text.encode()) > LARGEST_BYTES:
        raise _invalid([Problem("", f"is larger than {LARGEST_BYTES // 1024} KiB")])
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        raise _invalid([Problem(_line(error.problem_mark or error.context_mark), _reason(error))]) from error
    except yaml.YAMLError as error:
        raise _invalid([Problem("", f"is not YAML: {str(error).splitlines()[0]}")]) from error
    except RecursionError:
        raise _invalid([Problem("", "nested too deeply once its aliases are followed")]) from None
    except (ValueError, OverflowError) as error:  # such as 2026-13-99, which YAML takes for a date
        raise _invalid([Problem("", f"holds a value that cannot be read: {error}")]) from error


class _Loader(yaml.SafeLoader):
    """The safe loader, with limits, and without keys that stand twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._aliases = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self._aliases += self.check_event(yaml.AliasEvent)
        self._depth += 1
        if self._aliases > MOST_ALIASES:
            raise _at(self._event(), f"more than {MOST_ALIASES} aliases")
        if self._depth > DEEPEST:
            raise _at(self._event(), f"nested more than {DEEPEST} deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _event(self) -> Any:
        return self.peek_event()  # type: ignore[no-untyped-call]

    def get_single_node(self) -> Node | None:
        root = super().get_single_node()
        if root is not None and _size(root, {}, ()) > MOST_NODES:
            raise _at(root, f"more than {MOST_NODES} values once its aliases are followed")
        return root

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, ScalarNode)]
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                raise _at(key, "a key must be plain text")
        twice = [key for key, count in Counter(keys).items() if count > 1]
        if twice:
            second = [key for key, _ in node.value if key.value == twice[0]][1]
            raise _at(second, f"the key {twice[0]!r} stands twice")
        return super().construct_mapping(node, deep=deep)


def _entry(data: Any) -> SinkEntry:
    """Read one entry: a sink, and what is said about its DAG.

    :raises ConfigurationError: with the problems of both.
    """
    if not isinstance(data, Mapping):
        return SinkEntry(SinkSpec.parse(data), DagOptions())
    sink, problems, dag = {key: value for key, value in data.items() if key != DAG_KEY}, [], DagOptions()
    try:
        dag = DagOptions.model_validate(data.get(DAG_KEY, dag))
    except ValidationError as error:
        problems += [_below_dag(problem) for problem in problems_of(error, DagOptions)]
    try:
        spec = SinkSpec.parse(sink)
    except ConfigurationError as error:
        raise _invalid([*error.problems, *problems]) from None
    if problems:
        raise _invalid(problems)
    return SinkEntry(spec, dag)


def _below_dag(problem: Problem) -> Problem:
    return Problem(f"{DAG_KEY}.{problem.where}".rstrip("."), problem.what, problem.hint)


def _at(found: Any, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=found.start_mark)


def _size(node: Node, sizes: dict[int, int], path: tuple[int, ...]) -> int:
    """Count the values below a node as often as its aliases repeat them."""
    if id(node) in path:
        raise _at(node, "an alias that holds itself")
    if id(node) not in sizes:
        inside = (*path, id(node))
        sizes[id(node)] = 1 + sum(_size(child, sizes, inside) for child in _children(node))
    return sizes[id(node)]


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield from (key, value)


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}" if mark is not None else ""


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "is not YAML"
    if "could not determine a constructor" in problem:
        return problem.replace("could not determine a constructor for", "plain values only, not")
    if error.context == "expected a single document in the stream":
        return "holds more than one document"
    return f"{error.context}: {problem}" if error.context else problem


def _placed(problem: Problem, entry: Any, index: int) -> Problem:
    name = entry.get("name") if isinstance(entry, dict) else None
    sink = f"sinks[{name if isinstance(name, str) else index}]"
    return Problem(f"{sink}.{problem.where}" if problem.where else sink, problem.what, problem.hint)


def _same_names(entries: Sequence[SinkEntry]) -> list[Problem]:
    counts = Counter(entry.spec.name for entry in entries)
    return [Problem(f"sinks[{name}]", "stands twice") for name, count in counts.items() if count > 1]


def _invalid(problems: Sequence[Problem]) -> ConfigurationError:
    return ConfigurationError("the list of sinks is not valid", problems)
