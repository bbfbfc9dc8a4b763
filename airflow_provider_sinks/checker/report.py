"""Writes findings for people, and as JSON for programs; :mod:`.formats` has more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_provider_sinks.checker.facts import FolderFacts, Place
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.core.wording import count


@dataclass(frozen=True)
class Report:
    """What a check of a folder found.

    :param folder: as it was named.
    :param files: how many Python files were read.
    :param seconds: how long the check took.
    """

    folder: str
    findings: tuple[Finding, ...]
    files: int = 0
    dags: int = 0
    sinks: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, folder: Path, facts: FolderFacts, findings: Sequence[Finding], seconds: float) -> Report:
        """Make a report, with files named as seen from here."""
        dags = sum(len(file.dags) for file in facts.files)
        names = {sink.spec.name for sink in facts.sinks}
        shown = tuple(_from_here(finding, folder) for finding in findings)
        return cls(str(folder), shown, len(facts.files), dags, len(names), seconds)

    @property
    def summary(self) -> str:
        """How much was read and found, on one line."""
        found = count(len(self.findings), "finding")
        seen = (
            f"{count(self.files, 'Python file')}, {count(self.dags, 'DAG')} and {count(self.sinks, 'sink')}"
        )
        return f"{self.folder}: {found} in {seen} in {self.seconds:.1f} s"

    def to_text(self) -> str:
        """Return the report for people."""
        return "\n".join([*map(str, self.findings), self.summary])

    def to_json(self) -> str:
        """Return the report for programs."""
        findings = [
            {
                "file": finding.place.file,
                "line": finding.place.line,
                "rule": finding.rule,
                "what": finding.what,
                "remedy": finding.remedy,
            }
            for finding in self.findings
        ]
        counts = {"files": self.files, "dags": self.dags, "sinks": self.sinks}
        document = {"folder": self.folder, **counts, "seconds": round(self.seconds, 3), "findings": findings}
        return json.dumps(document, indent=2)


def _from_here(finding: Finding, folder: Path) -> Finding:
    """Name files as the user named the folder, also inside of the text."""
    absolute, given = f"{folder.resolve()}/", "" if folder == Path() else f"{folder}/"
    place = Place(finding.place.file.replace(absolute, given), finding.place.line)
    return replace(finding, place=place, what=finding.what.replace(absolute, given))
