"""What your own tests call to check a folder of DAGs and sinks; see ``docs/checking.md``.

    def test_sinks():
        assert_no_findings("dags")

No network, no connection, no Variable, no database: each file is read in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from airflow_provider_sinks.checker.facts import Limits, Place
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.folder import gather
from airflow_provider_sinks.checker.report import Report
from airflow_provider_sinks.checker.rules import NAMES, judge
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

__all__ = ["Finding", "Limits", "Place", "Report", "assert_no_findings", "check_folder"]


def check_folder(folder: str | Path, *, limits: Limits | None = None, ignore: Collection[str] = ()) -> Report:
    """Check every DAG and every sink of a folder, in Python and in YAML.

    :param folder: what Airflow would take as its DAGs folder.
    :param limits: how long the reading of one file may take.
    :param ignore: names of rules whose findings are left out.
    :raises ConfigurationError: there is no such folder, or no such rule.
    :raises SinkError: Airflow cannot be imported.
    """
    unknown = [Problem(name, "is no rule", nearest(name, NAMES)) for name in ignore if name not in NAMES]
    if unknown:
        raise ConfigurationError("rules that do not exist cannot be ignored", unknown, ", ".join(NAMES))
    started = time.monotonic()
    facts = gather(Path(folder), limits or Limits())
    return Report.of(Path(folder), facts, judge(facts, ignore), time.monotonic() - started)


def assert_no_findings(
    folder: str | Path, *, limits: Limits | None = None, ignore: Collection[str] = ()
) -> None:
    """Fail with all findings of :func:`check_folder`, if there are any.

    :raises AssertionError: with the report as its message.
    """
    report = check_folder(folder, limits=limits, ignore=ignore)
    if report.findings:
        raise AssertionError(f"\n{report.to_text()}")
