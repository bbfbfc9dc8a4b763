"""``new-connector``: writes a project with a target that works, for its author to replace part by part.

What it writes stands beside this file, as a project whose target is called ``mytarget``: it is linted and
typed here as it stands. Only names differ in what is written.
"""

from __future__ import annotations

import argparse
import keyword
import os
import re
import tempfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from airflow_provider_sinks.cli.frame import command, show
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.kinds import points
from airflow_provider_sinks.core.spec.parts import Target

NAME_LENGTH_MAX = 40
_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{NAME_LENGTH_MAX - 1}}}")
_INHERITED = frozenset({"connector", "plain", "target"})
"""Their classes would have the names of those that the project inherits or imports."""


@command
def new_connector(options: argparse.Namespace) -> None:
    """Write the project, and say what is where."""
    folder = Path(options.folder or f"sinks-connector-{options.name.replace('_', '-')}")
    demand_writable(options.name, folder)
    files = write_project(options.name, folder)
    show([{"file": str(folder / name)} for name in files], options.output)


def demand_writable(name: str, folder: Path) -> None:
    """Stop before anything is written, with everything that is wrong.

    :raises ConfigurationError: the name is none for a target, or there is no place for the folder.
    """
    problems = [*name_problems(name), *_folder_problems(folder)]
    if problems:
        raise ConfigurationError(f'no connector "{name}" can be written to {folder}', problems)


def name_problems(name: str) -> list[Problem]:
    """Return what is wrong with a name that specs, a package and classes shall have."""
    if not _NAME.fullmatch(name):
        what = f"is no name of a target: a letter, then letters, digits and _, at most {NAME_LENGTH_MAX}"
    elif name in points():
        what = "is the name of a target that is installed"
    elif _is_taken(name):
        what = "means something else in Python or in a spec"
    else:
        return []
    return [Problem("NAME", what, f"write {_nearest_valid(name)}")]


def write_project(name: str, folder: Path) -> list[str]:
    """Write a project under its name into a folder that is not there yet: all of it, or nothing.

    :returns: its files, relative to the folder.
    :raises ConfigurationError: it could not be written.
    """
    written = {_named(path, name): _named(text, name) for path, text in template().items()}
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as draft:
            project = Path(draft, "project")
            for path, text in written.items():
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).write_text(text, encoding="utf-8")
            project.rename(folder)
    except OSError as error:
        problem = Problem("--folder", str(error))
        raise ConfigurationError(f"{folder} could not be written", [problem]) from error
    return sorted(written)


def template() -> dict[str, str]:
    """Return the files of the project as they stand here, by their paths."""
    root = resources.files("airflow_provider_sinks") / "cli" / "connector_project"
    return dict(_texts(root, ""))


def _texts(folder: Traversable, place: str) -> list[tuple[str, str]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            found += _texts(entry, f"{place}{entry.name}/")
        elif entry.is_file():
            found.append((f"{place}{entry.name}", entry.read_text(encoding="utf-8")))
    return found


def _named(text: str, name: str) -> str:
    names = {
        "sinks-connector-mytarget": f"sinks-connector-{name.replace('_', '-')}",
        "mytarget": name,
        "MyTarget": "".join(part.capitalize() for part in name.split("_")),
    }
    return re.sub("|".join(names), lambda found: names[found[0]], text)


def _is_taken(name: str) -> bool:
    is_pythons = keyword.iskeyword(name) or keyword.issoftkeyword(name)
    return is_pythons or name.startswith("model_") or hasattr(Target, name) or name in _INHERITED


def _nearest_valid(name: str) -> str:
    """Return a name that may be taken, as near as it gets."""
    near = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    near = near.lstrip("_0123456789").rstrip("_")[:NAME_LENGTH_MAX] or "target"
    return f"my_{near}"[:NAME_LENGTH_MAX] if name == near or name_problems(near) else near


def _folder_problems(folder: Path) -> list[Problem]:
    if os.path.lexists(folder):
        free = next(near for n in range(2, 1_000_000) if not os.path.lexists(near := Path(f"{folder}-{n}")))
        return [Problem("--folder", f"{folder} is there already", f"write --folder {free}")]
    if not folder.parent.is_dir():
        return [Problem("--folder", f"{folder.parent} is no folder", "make it first")]
    return []
