"""The schemas that a sink would register, as their registry judges them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.schemas.plan import SchemaPlan


def schema_checks(sink: str, plans: Iterable[SchemaPlan], seconds: float = 0.0) -> Iterator[Check]:
    """Judge what a start would do about each schema."""
    checks = Checks(sink, Family.SCHEMAS)
    for plan in plans:
        name = schema_check_name(plan.part.value)
        if plan.may_start:
            yield checks.passes(name, plan.told, seconds)
        else:
            problem = plan.problem()
            yield checks.fails(name, problem.what, problem.hint, seconds)


def schema_check_name(part: str) -> str:
    """Return how the check of a schema is called."""
    return f"schema of the target's {part}"
