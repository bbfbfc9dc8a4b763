"""What a reason of refusal consists of, and the evidence that its texts are made from.

Reasons are enums, one for each subject, of which every member is a :class:`ReasonEntry`. So a reason cannot
be without its entry, and a new one is added in the file of its subject alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.progress.history import Finding, Flaw, History
from airflow_provider_sinks.core.progress.identity import Identity, ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressKey
from airflow_provider_sinks.core.wording import identity


class Text(NamedTuple):
    """What a refusal says: what happened, and what was seen."""

    primary: str
    detail: str


def _nothing(_: Evidence) -> str:
    return ""


@dataclass(frozen=True)
class ReasonEntry:
    """Everything there is to a reason.

    :param brief: the reason in half a sentence, for tables; ``{kind}`` stands for topic or table.
    :param text: makes its text.
    :param ways: which ways on settle it, the least drastic first. Nothing settles what only a repair or a
        newer release can.
    :param repair: says how to mend it, or nothing.
    :param counts: the records still say how much was written.
    :param by_witness: it hangs on what Airflow's witness knows, which is then part of its accept codes.
    :param by_checkpoint: it hangs on Spark's checkpoint, which is then part of its accept codes.
    :param by_spec: it hangs on what the spec says, which is then part of its accept codes.
    :param runs_elsewhere: another driver may go on meanwhile; its epochs are no part of the accept codes.
    """

    brief: str
    text: Callable[[Evidence], Text]
    ways: tuple[WayOn, ...] = ()
    repair: Callable[[Evidence], str] = _nothing
    counts: bool = True
    by_witness: bool = False
    by_checkpoint: bool = False
    by_spec: bool = False
    runs_elsewhere: bool = False


class Reason(enum.Enum):
    """Why a sink must not go on by itself. The members stand with their subjects."""

    @property
    def entry(self) -> ReasonEntry:
        """Everything there is to it."""
        entry: ReasonEntry = self.value
        return entry

    def brief(self, kind: ResourceKind = ResourceKind.TOPIC) -> str:
        """Return it in half a sentence.

        :param kind: what the outputs of the sink are.
        """
        return self.entry.brief.format(kind=kind.value)


@dataclass(frozen=True)
class Refusal:
    """One reason to stop, and what it is about."""

    reason: Reason
    role: Role


@dataclass(frozen=True)
class Evidence:
    """What a refusal is told from: what was seen, what was asked for, and which refusal it is."""

    observation: Observation
    request: StartRequest
    refusal: Refusal

    @property
    def sink(self) -> str:
        """The sink, for a sentence."""
        return f'sink "{self.request.sink}"'

    @property
    def found(self) -> ResourceFacts:
        """What the refusal is about, as it is."""
        return self.observation.resources()[self.refusal.role]

    @property
    def title(self) -> str:
        """What the refusal is about, by role and name."""
        return self.found.title(self.refusal.role)

    @property
    def recorded(self) -> Identity | None:
        """What the refusal is about, as the run in force announced it."""
        return self.observation.recorded.get(self.refusal.role)

    @property
    def history(self) -> History:
        """The records, or none."""
        return self.observation.known

    @property
    def recorded_name(self) -> str:
        """The name under which it was recorded; a spec may name another one now."""
        renamed = self.recorded is not None and self.recorded.name != self.found.name
        return f'"{self.recorded.name}"' if self.recorded and renamed else "it"

    @property
    def what_was_recorded(self) -> str:
        """A sentence that tells the recorded one from every other."""
        return f"Recorded was {identity(self.recorded, self.found.kind)}." if self.recorded else ""

    @property
    def what_was_found(self) -> str:
        """A sentence that tells the one that is there from every other."""
        return f"Found is {identity(self.found.identity, self.found.kind)}."

    def flaws(self, *findings: Finding) -> str:
        """Return what is wrong with the records, of some kinds, each with where it stands."""
        return "; ".join(self._flaw(flaw) for flaw in self.history.flaws if flaw.finding in findings)

    def _flaw(self, flaw: Flaw) -> str:
        key = ProgressKey(self.request.sink, flaw.writer).encode().decode()
        offset = f"Offset {flaw.offset} of " if self.found.kind is ResourceKind.TOPIC else ""
        return f"{offset}{self.title}, key {key}: {flaw.what}"


def text_of(evidence: Evidence) -> Text:
    """Return what a refusal says."""
    return evidence.refusal.reason.entry.text(evidence)


def repair_of(evidence: Evidence) -> str:
    """Return how to mend what no way on settles, or an empty text."""
    return evidence.refusal.reason.entry.repair(evidence)
