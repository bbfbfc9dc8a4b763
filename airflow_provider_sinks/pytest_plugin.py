"""A pytest plug-in: ``pytest --sinks dags`` makes one test for each file of a folder of DAGs and sinks.

Without the option, and without ``sinks = dags`` in pytest's settings, it does nothing and imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from airflow_provider_sinks.testing import Finding, Report

_SETTINGS = (
    ("sinks", "folders with DAGs and sinks to check"),
    ("sinks_ignore", "names of rules of the check to leave out"),
    ("sinks_parse_seconds", "how long reading one file may take (default 5)"),
    ("sinks_hang_seconds", "when the reading of a file is ended (default 30)"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--sinks`` and the settings."""
    group = parser.getgroup("sinks")
    group.addoption("--sinks", action="append", default=[], metavar="FOLDER", help=_SETTINGS[0][1])
    for name, text in _SETTINGS[:2]:
        parser.addini(name, text, type="args", default=[])
    for name, text in _SETTINGS[2:]:
        parser.addini(name, text, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add the tests of the folders, so that ``-k`` and ``-x`` work on them too."""
    for folder in _folders(session.config):
        items.extend(SinksFolder.from_parent(session, name=str(folder), nodeid=f"sinks::{folder}").collect())


class SinksFolder(pytest.Collector):
    """A folder to check. It is checked once, when the first of its tests runs."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give a test for each file, and one for what stands in no file of the folder."""
        folder = Path(self.name)
        for file in _files(folder) if folder.is_dir() else ():
            yield SinksFile.from_parent(self, name=str(file.relative_to(folder)))
        yield SinksFile.from_parent(self, name="everything else")

    def report(self) -> Report:
        """Return the check of the folder."""
        return _checked(self.name, *_how(self.config))

    def findings(self, name: str) -> Sequence[Finding]:
        """Return the findings of one file, or those that belong to no file with a test of its own."""
        own = {str(Path(self.name) / str(file.relative_to(self.name))) for file in _files(Path(self.name))}
        file = str(Path(self.name) / name)
        found = self.report().findings
        if file in own:
            return [finding for finding in found if finding.place.file == file]
        return [finding for finding in found if finding.place.file not in own]


class SinksFile(pytest.Item):
    """The check of one file."""

    parent: SinksFolder

    def runtest(self) -> None:
        """Fail with the findings of the file."""
        findings = self.parent.findings(self.name)
        if findings:
            pytest.fail("\n".join(map(str, findings)), pytrace=False)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show an error of ours as it reads, without the code around it."""
        from airflow_provider_sinks.core.errors import SinkError

        if isinstance(excinfo.value, SinkError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Return how the test is named."""
        return self.parent.name, None, f"sinks::{self.parent.name}::{self.name}"


def _folders(config: pytest.Config) -> list[str]:
    given = config.getoption("--sinks") or config.getini("sinks")
    return [str(folder) for folder in given]


def _how(config: pytest.Config) -> tuple[float | None, float | None, tuple[str, ...]]:
    seconds: list[Any] = [config.getini(name) for name, _ in _SETTINGS[2:]]
    parse, hang = (float(value) if value else None for value in seconds)
    return parse, hang, tuple(config.getini("sinks_ignore"))


@cache
def _checked(folder: str, parse: float | None, hang: float | None, ignore: tuple[str, ...]) -> Report:
    from airflow_provider_sinks.testing import Limits, check_folder

    default = Limits()
    limits = Limits(parse or default.parse_seconds, hang or default.hang_seconds)
    return check_folder(folder, limits=limits, ignore=ignore)


@cache
def _files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that may hold DAGs or sinks, without importing anything of Airflow."""
    shown = (path for path in folder.rglob("*") if path.suffix in (".py", ".yaml", ".yml"))
    return tuple(
        sorted(
            path for path in shown if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        )
    )
