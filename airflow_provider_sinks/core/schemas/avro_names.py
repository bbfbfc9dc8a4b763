"""The named types of an Avro schema: their names, where each is defined, and how a schema stands by itself.

Names go by the Avro specification 1.12, section *Names*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_sinks.core.schemas.avro_types import COMPLEX

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
NAME_HINT = "letters, digits and _, and no digit in front"
_DEFINED = ("record", "error", "enum", "fixed")


def full_name(name: str, namespace: str) -> str:
    """Return the full name of a name that stands in a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def own_name(tree: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """Return the full name of a definition, and the namespace inside of it."""
    name = full_name(str(tree.get("name", "")), str(tree.get("namespace", namespace)))
    return name, name.rpartition(".")[0]


def definitions(tree: Any, namespace: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    """Give every named type that is defined in a schema, each with the namespace around it."""
    if isinstance(tree, list):
        for one in tree:
            yield from definitions(one, namespace)
    elif isinstance(tree, dict):
        inner = namespace
        if tree.get("type") in _DEFINED:
            yield tree, namespace
            inner = own_name(tree, namespace)[1]
        for key in ("type", "items", "values"):
            yield from definitions(tree.get(key), inner)
        for one in tree.get("fields") or ():
            yield from definitions(one.get("type") if isinstance(one, dict) else None, inner)


class Inlining:
    """Writes what a schema refers to into it, at the first place where it is named."""

    def __init__(self, trees: Mapping[str, tuple[Mapping[str, Any], str]]) -> None:
        self._trees = trees
        self._written: set[str] = set()

    def written(self, tree: Any, namespace: str) -> Any:
        """Return a schema that stands by itself.

        :param tree: as its JSON has it.
        :param namespace: around it.
        """
        if isinstance(tree, str):
            return self._named(tree, namespace)
        if isinstance(tree, list):
            return [self.written(one, namespace) for one in tree]
        if not isinstance(tree, dict):
            return tree
        inner, made = namespace, dict(tree)
        if tree.get("type") in _DEFINED:
            name, inner = own_name(tree, namespace)
            self._written.add(name)
        for key in ("type", "items", "values"):
            if key in made and made[key] not in COMPLEX:
                made[key] = self.written(made[key], inner)
        if isinstance(made.get("fields"), list):
            made["fields"] = [{**one, "type": self.written(one.get("type"), inner)} for one in made["fields"]]
        return made

    def _named(self, name: str, namespace: str) -> Any:
        for full in (full_name(name, namespace), name):
            if full in self._trees and full not in self._written:
                definition, around = self._trees[full]
                own, inside = own_name(definition, around)
                absolute = {**definition, "name": own.rpartition(".")[2], "namespace": inside}
                return self.written(absolute, around)
            if full in self._written:
                return full
        return name
