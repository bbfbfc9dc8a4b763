"""What the checker reports: one mistake, where it stands, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.checker.facts import Place


@dataclass(frozen=True, order=True)
class Finding:
    """A mistake.

    :param place: file and line.
    :param rule: the name by which the rule can be left out.
    :param what: what is wrong.
    :param remedy: what to do about it.
    """

    place: Place
    rule: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.rule}: {self.what}\n    Remedy: {self.remedy}"
