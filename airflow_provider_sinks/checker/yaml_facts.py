"""Reads the YAML files of a folder that hold sinks: no Python runs, nothing is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from airflow_provider_sinks.checker.facts import Place, YamlFacts
from airflow_provider_sinks.core.spec.sink_file import read_sinks
from airflow_provider_sinks.core.spec.yaml_lines import YamlLines

_SUFFIXES = (".yaml", ".yml")
_KEY = "sinks"
_AS_GOOD_AS = 0.85  # sink and snks, but not links
_SINKS_KEY = re.compile(r"^(?P<key>[\"']?\w+[\"']?)\s*:", re.MULTILINE)


def yaml_facts(folder: Path, named: Iterable[Path] = ()) -> Iterator[YamlFacts]:
    """Read the YAML files of sinks of a folder, and those elsewhere that its DAGs read.

    :param named: files that are files of sinks whatever stands in them.
    """
    known = {file.resolve() for file in named}
    inside = {file.resolve() for file in yaml_files(folder)}
    for file in sorted(known | inside):
        data = file.read_bytes()
        if file in known or holds_sinks(data.decode(errors="replace")):
            yield _read(file, data)


def yaml_files(folder: Path) -> Iterator[Path]:
    """Return the YAML files of a folder and the folders below, but not in hidden ones."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in _SUFFIXES and path.is_file() and not hidden:
            yield path


def holds_sinks(text: str) -> bool:
    """Tell whether a YAML text is a list of sinks, or was meant to be one."""
    keys = {found["key"].strip("\"'") for found in _SINKS_KEY.finditer(text)}
    meant = get_close_matches(_KEY, [key.lower() for key in keys], cutoff=_AS_GOOD_AS)
    return _KEY in keys or (bool(meant) and "source" in text and "target" in text)


def _read(file: Path, data: bytes) -> YamlFacts:
    """Read a file. Two sinks of one name are two sinks here: a rule of its own finds them."""
    lines = YamlLines.of(data.decode(errors="replace"))
    found = read_sinks(data)
    of_entries = [problem for entry in found.broken for problem in entry.problems]
    problems = dict.fromkeys([*found.problems, *of_entries])
    return YamlFacts(
        str(file),
        tuple((Place(str(file), lines.of_entry(entry.index)), entry.spec) for entry in found.sinks),
        tuple((Place(str(file), lines.line(problem.where)), problem) for problem in problems),
    )
