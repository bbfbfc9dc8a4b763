"""The names of sinks that stand in the files of a folder, read without running any of them.

For the suggestions of a form: a DAG file may ask no service while it is read, and running other DAG files
would cost as much as reading all of them. So a name counts where it stands as it is:
``Sink(name="orders", ...)`` in Python, ``- name: orders`` below ``sinks:`` in YAML. A name that a program
makes (``f"clicks_{region}"``) is not found, and can be written into the form all the same.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_sinks.core.spec.fields import NAME_PATTERN
from airflow_provider_sinks.core.spec.safe_yaml import UnreadableError, read_yaml

_SINK = "Sink"
_YAML = (".yaml", ".yml")


def known_sinks(folder: str | Path) -> list[str]:
    """Return the names of the sinks that stand in a folder and the folders in it, sorted.

    A file that cannot be read suggests nothing: Airflow, or ``dags_from_yaml``, says what is wrong with it.

    :param folder: of DAG files, such as ``Path(__file__).parent``.
    """
    return sorted({name for file in _files(Path(folder)) for name in _names(file)})


def _files(folder: Path) -> Iterator[Path]:
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        yield from (Path(path, name) for name in names)


def _names(file: Path) -> Iterator[str]:
    if file.suffix not in (".py", *_YAML):
        return
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    found = _in_yaml(text) if file.suffix in _YAML else _in_python(text)
    yield from (name for name in found if re.fullmatch(NAME_PATTERN, name))


def _in_python(text: str) -> Iterator[str]:
    if f"{_SINK}(" not in text:  # saves most files from being parsed
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_sink(node.func):
            yield from (text for word in node.keywords if word.arg == "name" for text in _literal(word.value))


def _is_sink(function: ast.expr) -> bool:
    """Tell ``Sink(...)`` and ``sinks.Sink(...)`` from other calls."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == _SINK
        case _:
            return False


def _literal(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


def _in_yaml(text: str) -> Iterator[str]:
    if "sinks:" not in text:
        return
    try:
        document = read_yaml(text)
    except UnreadableError:
        return
    entries = document.get("sinks") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry["name"]
