"""The rules: each a pure function from the facts of a folder to findings, one file per theme.

A new rule is a function in the file of its theme, its name in :data:`RULES`, a row in ``docs/checking.md``,
and a table test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from airflow_provider_sinks.checker.facts import FolderFacts
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.rules import dags, files, sinks, topics
from airflow_provider_sinks.checker.rules.problems import PROBLEM_RULES

Rule = Callable[[FolderFacts], Iterator[Finding]]

RULES: Mapping[str, Rule] = {
    "import-error": files.import_errors,
    "hangs": files.hangs,
    "slow": files.slow,
    "network": files.network,
    "connection": files.connections,
    "variable": files.variables,
    "duplicate-dag": dags.duplicates,
    "not-a-dag": dags.not_taken,
    "unstable-dag": dags.unstable,
    "deferrable": dags.deferrable,
    "invalid-task": sinks.of_tasks,
    "invalid-yaml": sinks.of_yaml,
    "invalid-dag": sinks.of_stand_ins,
    "duplicate-sink": sinks.duplicates,
    "unlisted-sink": sinks.unlisted,
    "shared-topic": topics.shared_data,
    "shared-dead-letter": topics.shared_dead_letters,
    "shared-progress": topics.shared_progress,
    "cycle": topics.cycles,
}

NAMES: tuple[str, ...] = tuple(
    sorted({*RULES, *PROBLEM_RULES} - {"invalid-dag", "invalid-task", "invalid-yaml"})
)
"""The names that findings carry."""


def judge(facts: FolderFacts, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return what all rules find, in the order of the places.

    :param ignore: names of rules whose findings are left out.
    """
    found = {finding for rule in RULES.values() for finding in rule(facts)}
    return tuple(sorted(finding for finding in found if finding.rule not in ignore))
