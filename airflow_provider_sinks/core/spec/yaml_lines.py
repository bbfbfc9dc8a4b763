"""Finds the line of an option in a YAML file of sinks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

_STEP = re.compile(r"[^.\[\]]+")
_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True)
class YamlLines:
    """The lines of one YAML text, by the paths that problems name: ``sinks[a].target.kafka.key[0]``."""

    root: Node | None

    @classmethod
    def of(cls, text: str) -> YamlLines:
        """Read a text; one that is no YAML has no lines but those that its problems name."""
        try:
            return cls(yaml.compose(text, Loader=yaml.SafeLoader))
        except (yaml.YAMLError, RecursionError):
            return cls(None)

    def line(self, where: str) -> int:
        """Return the line of an option, or of the nearest thing around it; from 1."""
        if named := _LINE.fullmatch(where):
            return int(named[1])
        line, node = 1, self.root
        for step in _STEP.findall(where):
            key, node = _below(node, step) if node is not None else (None, None)
            if key is None:
                break
            line = key.start_mark.line + 1
        return line

    def of_entry(self, index: int) -> int:
        """Return the line of a sink by its place in the list, from 0; names may stand twice."""
        listed = _below(self.root, "sinks")[1] if self.root is not None else None
        if not isinstance(listed, SequenceNode) or index >= len(listed.value):
            return 1
        return int(listed.value[index].start_mark.line) + 1


def _below(node: Node, step: str) -> tuple[Node | None, Node | None]:
    """Return what stands for a step, to point at, and the value behind it."""
    if isinstance(node, MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), (None, None))
    if isinstance(node, SequenceNode):
        found = [item for item in node.value if _name(item) == step]
        found += [item for index, item in enumerate(node.value) if str(index) == step]
        return (found[0], found[0]) if found else (None, None)
    return None, None


def _name(item: Node) -> str | None:
    """Return the name by which problems call an item of a list."""
    named = item.value if isinstance(item, MappingNode) else []
    return next((value.value for key, value in named if key.value == "name"), None)
