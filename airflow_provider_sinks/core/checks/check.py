"""A check and its outcome, and the report of all of them: a table for people, data for programs.

Only a failed check stops anything. *Unknown* says that something could not be judged, and why; *skipped* that
it did not need to be, or that a check before it failed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError

_INDENT = " " * 9


class Outcome(enum.StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Family(enum.StrEnum):
    """What a check is about."""

    OPTIONS = "options"
    NETWORK = "network"
    CLUSTER = "cluster"
    TOPICS = "topics"
    PERMISSIONS = "permissions"
    DATABASE = "database"
    SCHEMAS = "schemas"
    SPARK = "spark"
    SQL = "sql"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    :param subject: the connection that it belongs to; of the SQL, the sink.
    :param name: what was looked at, such as ``Write on topic "orders"``; one per family and subject.
    :param detail: what was seen.
    :param hint: what helps.
    :param seconds: how long looking took; 0 where it was seen together with another check.
    :param retryable: whether the same check may pass later, when it failed.
    """

    subject: str
    family: Family
    name: str
    outcome: Outcome
    detail: str
    hint: str = ""
    seconds: float = 0.0
    retryable: bool = False


@dataclass(frozen=True)
class Checks:
    """Makes the checks of one family of one connection."""

    subject: str
    family: Family

    def passes(self, name: str, detail: str, seconds: float = 0.0) -> Check:
        """Say that it is as it must be."""
        return Check(self.subject, self.family, name, Outcome.PASS, detail, "", seconds)

    def fails(
        self, name: str, detail: str, hint: str = "", seconds: float = 0.0, *, retryable: bool = False
    ) -> Check:
        """Say that a sink cannot run like this."""
        return Check(self.subject, self.family, name, Outcome.FAIL, detail, hint, seconds, retryable)

    def unknown(self, name: str, detail: str, hint: str = "", seconds: float = 0.0) -> Check:
        """Say that nobody can tell; the sink may run or not."""
        return Check(self.subject, self.family, name, Outcome.UNKNOWN, detail, hint, seconds)

    def skips(self, name: str, why: str) -> Check:
        """Say that nobody looked, and why."""
        return Check(self.subject, self.family, name, Outcome.SKIPPED, why)

    def judged_by(self, name: str, error: SinkError, seconds: float = 0.0) -> Check:
        """Make a failed check of an error, whose type says whether trying again may help."""
        detail = " ".join(filter(None, [error.primary, " ".join(error.detail.split())]))
        return self.fails(name, detail, error.hint, seconds, retryable=error.retryable)


@dataclass(frozen=True)
class Report:
    """All checks that were made.

    :param title: what was checked, such as ``sink "orders"``.
    :param clusters: the cluster that each connection leads to, where it was learnt.
    :param lookups: the columns and types of each lookup, as an Arrow schema, where they were asked for and
        learnt.
    :param source_schemas: by key and value, what the source is read by, where a registry has told it.
    """

    title: str
    checks: tuple[Check, ...]
    clusters: Mapping[str, str] = field(default_factory=dict)
    lookups: Mapping[str, bytes] = field(default_factory=dict)
    source_schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that stop a sink."""
        return tuple(check for check in self.checks if check.outcome is Outcome.FAIL)

    def table(self) -> str:
        """Return all checks as a table, with what helps below what is not well."""
        return "\n".join(_lines(self.checks))

    def to_data(self) -> list[dict[str, Any]]:
        """Return all checks as data, for XCom."""
        return [
            {**asdict(check), "family": str(check.family), "outcome": str(check.outcome)}
            for check in self.checks
        ]

    def error(self) -> SinkError | None:
        """Return what the failed checks amount to: final if one of them is; ``None`` without any."""
        if not self.failed:
            return None
        primary = f"{len(self.failed)} of {len(self.checks)} checks of {self.title} failed"
        problems = [
            Problem(f"{check.subject}: {check.name}", check.detail, check.hint) for check in self.failed
        ]
        final = ConfigurationError(primary, problems)
        if all(check.retryable for check in self.failed):
            return UnavailableError(primary, final.detail)
        return final


def _lines(checks: Iterable[Check]) -> Iterable[str]:
    made = list(checks)
    subjects = max((len(check.subject) for check in made), default=0)
    names = max((len(check.name) for check in made), default=0)
    for check in made:
        mark = check.outcome.upper() if check.outcome is Outcome.FAIL else str(check.outcome)
        took = f" ({check.seconds:.2f} s)" if check.seconds >= 0.005 else ""
        yield f"{mark:<8} {check.subject:<{subjects}}  {check.name:<{names}}  {check.detail}{took}"
        if check.hint:
            yield f"{_INDENT}Hint: {check.hint}"
