"""What a problem of a sink or of an argument is called, and what to do about it."""

from __future__ import annotations

import re

from airflow_provider_sinks.checker.facts import Place
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.core.errors import Problem

PROBLEM_RULES = ("invalid-sink", "owned-argument", "plan", "unknown-option")

OWNED = frozenset({"application", "application_args", "conn_id", "java_class", "properties_file"})
"""Arguments of ``SparkSubmitOperator`` that belong to the operator of sinks."""

_UNKNOWN = "is not known"
_PLAN = re.compile(r"(.*\.)?(query|select|where|writers|output_mode|target\.\w+\.key)")
_KEY_IS_MISSING = "is missing"


def finding_of(place: Place, problem: Problem, about: str = "") -> Finding:
    """Return the finding that a problem of a sink or an argument amounts to.

    :param about: whose problem it is, such as ``sink "orders"``.
    """
    rule = _rule_of(problem)
    what = f"{problem.where}: {problem.what}" if problem.where else problem.what
    return Finding(place, rule, f"{about}: {what}" if about else what, _remedy(problem, rule))


def _rule_of(problem: Problem) -> str:
    option = problem.where.removeprefix("spark.").removeprefix("sink: ")
    if option in OWNED:
        return "owned-argument"
    if option == "deferrable":
        return "deferrable"
    if problem.what.startswith(_UNKNOWN):
        return "unknown-option"
    if _PLAN.fullmatch(option) and not _is_plain_key(problem):
        return "plan"
    return "invalid-sink"


def _is_plain_key(problem: Problem) -> bool:
    return problem.where.endswith("key") and not problem.what.startswith(_KEY_IS_MISSING)


def _remedy(problem: Problem, rule: str) -> str:
    if problem.hint:
        return problem.hint
    if rule == "owned-argument":
        return "leave it out"
    if rule == "unknown-option":
        return "leave it out; docs/sinks.md lists the options"
    return "write what docs/sinks.md says of this option"
