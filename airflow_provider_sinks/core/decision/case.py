"""A case of refusal: what was seen, what was wanted, and which refusal it is; its texts are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Wanted
from airflow_provider_sinks.core.decision.ways import Refusal
from airflow_provider_sinks.core.progress.history import Finding, Flaw, History
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import ProgressKey


@dataclass(frozen=True)
class Case:
    """Everything a text is made from."""

    observation: Observation
    wanted: Wanted
    refusal: Refusal

    @property
    def sink(self) -> str:
        """The sink, for a sentence."""
        return f'sink "{self.wanted.sink}"'

    @property
    def seen(self) -> ResourceFacts:
        """The topic that the refusal is about, as it is."""
        return self.observation.topics()[self.refusal.role]

    @property
    def topic(self) -> str:
        """The topic that the refusal is about, for the beginning of a sentence."""
        return f'{self.refusal.role} "{self.seen.name}"'

    @property
    def recorded(self) -> Identity | None:
        """The topic that the refusal is about, as the run in force announced it."""
        return self.observation.recorded.get(self.refusal.role)

    @property
    def history(self) -> History:
        """The records, or none."""
        return self.observation.known

    def flaws(self, *findings: Finding) -> str:
        """Return what is wrong with the records, of some kinds, each with its place."""
        return "; ".join(_place(self, flaw) for flaw in self.history.flaws if flaw.finding in findings)


def _place(case: Case, flaw: Flaw) -> str:
    key = ProgressKey(case.wanted.sink, flaw.writer).encode().decode()
    return f"Offset {flaw.offset} of {case.topic}, key {key}: {flaw.what}"
