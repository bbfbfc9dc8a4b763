"""Our own code as Spark gets it: the application file, and the library as a zip for ``--py-files``.

The cluster has no Airflow and does not need this package installed: the zip holds the folders that a driver
and its executors import, and nothing of the Airflow side. The entry points of targets go with it: they are
how a driver finds the one that a sink names.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from airflow_provider_sinks import __version__
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.kinds import GROUP, points

PACKAGE = "airflow_provider_sinks"
LIBRARY_NAME = f"{PACKAGE}.zip"
_SHIPPED_FOLDERS = ("clients", "connectors", "core", "streaming")
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def application_file(name: str = "sink_job.py") -> Path:
    """Return the path of an application: in the installed package, or beside it in a checkout."""
    package = Path(str(resources.files(PACKAGE)))
    candidates = (package / "spark_jobs" / name, package.parent / "spark_jobs" / name)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise ConfigurationError(
        f"the Spark application {name} is not installed",
        hint="Install airflow-provider-sinks again; Spark needs it as a file, not inside a zip.",
    )


def write_library(folder: Path) -> Path:
    """Write the zip for ``--py-files`` into a folder and return its path; equal code gives equal bytes.

    :param folder: where the zip goes, usually the launch directory.
    """
    path = folder / LIBRARY_NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as library:
        for name, file in sorted(_library_files(), key=lambda found: found[0]):
            library.writestr(_entry(name), file.read_bytes())
        for name, text in _distribution().items():
            library.writestr(_entry(name), text)
    return path


def _distribution() -> dict[str, str]:
    """Return the files by which ``importlib.metadata`` finds our targets inside a zip."""
    folder = f"{PACKAGE}-{__version__}.dist-info"
    ours = [point for point in points().values() if point.value.startswith(f"{PACKAGE}.")]
    lines = [f"[{GROUP}]", *sorted(f"{point.name} = {point.value}" for point in ours), ""]
    name = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {__version__}\n"
    return {f"{folder}/METADATA": name, f"{folder}/entry_points.txt": "\n".join(lines)}


def _library_files() -> Iterator[tuple[str, Traversable]]:
    package = resources.files(PACKAGE)
    yield f"{PACKAGE}/__init__.py", package / "__init__.py"
    for folder in _SHIPPED_FOLDERS:
        yield from _files_below(package / folder, f"{PACKAGE}/{folder}")


def _files_below(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files_below(entry, f"{name}/{entry.name}")
        elif entry.is_file():
            yield f"{name}/{entry.name}", entry


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _FIXED_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
