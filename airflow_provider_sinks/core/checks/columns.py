"""The columns of a target that is there, beside those that its sink would write."""

from __future__ import annotations

from typing import assert_never

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.evolution import Compatible, Incompatible, NeedsMigration, SchemaDiff

NAME = "columns of the target"
_FITS = "compatible: the target takes them as it is, or is made of them"


def column_check(sink: str, diff: SchemaDiff, seconds: float = 0.0) -> Check:
    """Judge what a start would do about the columns of a target."""
    checks = Checks(sink, Family.SCHEMAS)
    match diff:
        case Compatible():
            return checks.passes(NAME, _FITS, seconds)
        case NeedsMigration():
            told = "; ".join(diff.statements)
            return checks.passes(NAME, f"needs migration, which a start does: {told}", seconds)
        case Incompatible():
            problems = "; ".join(map(str, diff.problems))
            return checks.fails(NAME, f"incompatible, {diff.primary}: {problems}", diff.hint, seconds)
        case other:
            assert_never(other)
