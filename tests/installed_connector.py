"""The example of a connector in a package of its own, built and installed as its users install it."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_sinks.core.connection import types
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.spec import kinds
from airflow_provider_sinks.core.spec.sink import SinkSpec

EXAMPLE = Path(__file__).parents[1] / "examples" / "sinks-connector-files"
REDIS_EXAMPLE = EXAMPLE.with_name("sinks-connector-redis")


@dataclass(frozen=True)
class Installed:
    """:param folder: where it is installed, for the paths of Python.

    :param wheel: what was installed.
    """

    folder: Path
    wheel: Path

    @contextmanager
    def found(self) -> Iterator[None]:
        """Let this process find it inside, as a process does that starts with the folder on its path."""
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(self.folder)
            _forget()
            yield
        _forget()


def register(folder: Path, *kinds_of: str) -> Installed:
    """Tell Python of kinds that stand in modules which it finds anyway.

    :param kinds_of: lines such as ``name = module:KIND``.
    """
    about = folder / "brought-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (about / "entry_points.txt").write_text("\n".join([f"[{kinds.GROUP}]", *kinds_of, ""]))
    return Installed(folder, about)


def install(folder: Path, project: Path = EXAMPLE) -> Installed:
    """Build a connector's project and install it, in seconds: it needs nothing that is not here."""
    source = folder / "source"
    shutil.copytree(project, source)  # a build writes beside what it builds
    _uv("build", "--wheel", "--no-build-isolation", "--out-dir", str(folder / "dist"), str(source))
    (wheel,) = (folder / "dist").glob("*.whl")
    target = folder / "installed"
    _uv("pip", "install", "--no-index", "--no-deps", "--target", str(target), str(wheel))
    return Installed(target, wheel)


def visible_files(sink: SinkSpec, role: Role = Role.DATA) -> list[Path]:
    """Return the files of a table that any reader gets: those that manifests name."""
    log = importlib.import_module("sinks_connector_files.log")
    folders = sink.resources
    place = log.Log(Path(folders[Role.PROGRESS]), sink.name)
    return list(log.visible_files(Path(folders[role]), place))


def visible_rows(sink: SinkSpec, role: Role = Role.DATA) -> list[dict[str, Any]]:
    """Return the rows of those files."""
    return [row for file in visible_files(sink, role) for row in pq.read_table(file).to_pylist()]


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", *arguments, "--offline", "--quiet", "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _forget() -> None:
    kinds.points.cache_clear()
    kinds.load.cache_clear()
    types.known_types.cache_clear()
