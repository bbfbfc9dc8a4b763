"""Reads one YAML document of plain values: safely, strictly, and with the line and the remedy of a mistake.

``safe_load``'s rules, and stricter where YAML lets a mistake pass or an attack work: a key that stands twice
is an error, and so are more aliases, more nesting or more text than any list of sinks needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from airflow_provider_sinks.core.errors import Problem

LARGEST_BYTES = 1024 * 1024
MOST_ALIASES = 100
MOST_NODES = 100_000
DEEPEST = 30


class UnreadableError(Exception):
    """A text cannot be read as YAML.

    :param problem: what is wrong, with its line where one is known.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def decoded(data: bytes) -> str:
    """Return the text of a file.

    :raises UnreadableError: it is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            Problem(f"line {line}", f"is not UTF-8: byte 0x{data[error.start]:02x}", "save the file as UTF-8")
        ) from None


def read_yaml(text: str) -> Any:
    """Read one YAML document of plain values.

    :raises UnreadableError: it is no YAML, has a key twice, or is larger than any list of sinks.
    """
    if len(text.encode(errors="replace")) > LARGEST_BYTES:
        raise UnreadableError(
            Problem("", f"is larger than {LARGEST_BYTES // 1024} KiB", "spread the sinks over several files")
        )
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        raise UnreadableError(_problem_of(error)) from error
    except yaml.YAMLError as error:
        raise UnreadableError(Problem(*_unprintable(text, error))) from error
    except RecursionError:
        raise UnreadableError(Problem("", "nested too deeply once its aliases are followed")) from None
    except (ValueError, OverflowError) as error:  # such as 2026-13-99, which YAML takes for a date
        raise UnreadableError(
            Problem("", f"holds a value that cannot be read: {error}", "put the value in quotes")
        ) from error


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
            first, second = [key for key, _ in node.value if key.value == twice[0]][:2]
            raise _at(second, f"the key {twice[0]!r} stands twice, first in {_line(first.start_mark)}")
        return super().construct_mapping(node, deep=deep)


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


def _problem_of(error: yaml.MarkedYAMLError) -> Problem:
    return Problem(_line(error.problem_mark or error.context_mark), _reason(error), _remedy(error))


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "is not YAML"
    if "could not determine a constructor" in problem:
        return problem.replace("could not determine a constructor for", "plain values only, not")
    if error.context == "expected a single document in the stream":
        return "holds more than one document"
    return f"{error.context}: {problem}" if error.context else problem


def _remedy(error: yaml.MarkedYAMLError) -> str:
    said, begun = f"{error.context}: {error.problem}", _line(error.context_mark)
    for words, remedy in _REMEDIES.items():
        if words in said:
            return remedy.format(begun=begun)
    return "mend this line, or the one above it"


_REMEDIES = {
    "expected ',' or ']'": 'close the "[" of {begun}, or write a comma between its values',
    "expected ',' or '}'": 'close the "{{" of {begun}, or write a comma between its keys',
    "expected the node content": "a value is missing here: look for a comma or bracket too many near {begun}",
    "while scanning a quoted scalar": "close the quote of {begun}",
    "mapping values are not allowed": 'a value that holds ": " needs quotes; or the line is indented too far',
    "could not find expected ':'": 'a key needs ": " behind it; or the line stands in the wrong column',
    "expected <block end>": "begin the entries of one list or mapping in the same column",
    "found character '\\t'": "indent with spaces, not with tabs",
    "that cannot start any token": "put the value in quotes",
    "found undefined alias": 'name it before by "&", or put the value in quotes',
    "while scanning an alias": "put a value that begins with * in quotes",
    "stands twice": "leave one of them out",
    "could not determine a constructor": 'leave the "!" and its word out',
    "expected a single document": 'leave out the "---" and what stands behind it, or make two files',
    "aliases": "write the values out, or spread the sinks over several files",
    "expected a mapping": "a merge (<<) takes a mapping: <<: *name",
    "must be plain text": "write the key as one word",
}
"""What to do, by words of the message. The first that fits counts."""


def _unprintable(text: str, error: yaml.YAMLError) -> tuple[str, str, str]:
    position = getattr(error, "position", None)
    where = "" if position is None else f"line {text.count(chr(10), 0, position) + 1}"
    return where, f"is not YAML: {str(error).splitlines()[0]}", "leave the character out"
