"""The answers that a refusal offers: their codes, and what each will do, with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import Existence, Observation, Wanted
from airflow_provider_sinks.core.decision.ways import Reason, Refusal, Way, code_for, settling
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.wording import offsets, remembered, summary


@dataclass(frozen=True)
class WayOn:
    """One answer that is offered.

    :param code: what to give as ``accept``.
    :param ways: what it stands for.
    :param explanation: what will happen, with numbers.
    """

    code: str
    ways: tuple[Way, ...]
    explanation: str

    @property
    def name(self) -> str:
        """The ways by name, such as ``take_over+adopt``."""
        return "+".join(self.ways)


def ways_on(refusals: Sequence[Refusal], observation: Observation, wanted: Wanted) -> tuple[WayOn, ...]:
    """Return every answer that settles all of the refusals, the least drastic first."""
    situation = _Situation(observation, wanted, refusals)
    return tuple(
        WayOn(
            code=code_for(ways, refusals, observation, wanted),
            ways=ways,
            explanation="; ".join(_EFFECTS[way](situation) for way in ways),
        )
        for ways in settling(refusals, observation, wanted)
    )


def next_generation(observation: Observation, wanted: Wanted) -> int:
    """Return the generation after the newest that anybody remembers."""
    return 1 + max(observation.known.generation, wanted.witness.generation if wanted.witness else 0)


@dataclass(frozen=True)
class _Situation:
    """What a person is asked to decide on; each method tells what one way does in it."""

    observation: Observation
    wanted: Wanted
    refusals: Sequence[Refusal]

    def take_over(self) -> str:
        return "make this Airflow the owner and fence the other one's writers; stop the sink there first"

    def adopt(self) -> str:
        taken = self._topics(Reason.SOURCE_REPLACED, Reason.OUTPUT_REPLACED, Reason.PROGRESS_REPLACED)
        return f"take {taken} as it is for the recorded one and resume at offsets {self._positions()}"

    def continue_without_output(self) -> str:
        lost = self._topics(Reason.OUTPUT_LOST)
        return (
            f"make {lost} anew, empty, and resume at offsets {self._positions()}; what was written "
            f"({summary(self._history)}) is not written again"
        )

    def skip_lost(self) -> str:
        return f'resume where source topic "{self.wanted.source}" begins now; what was removed is left out'

    def resume_from_witness(self) -> str:
        begin = offsets(self.wanted.witness.offsets) if self.wanted.witness else ""
        return (
            f"begin generation {self._generation()} at offsets {begin}, where Airflow's witness stands: "
            f"{remembered(self.wanted.witness)}; what was written after it may be written again"
        )

    def start_over(self) -> str:
        begin = f'begin generation {self._generation()} at {self.wanted.start} of "{self.wanted.source}"'
        return f"{begin}; {self._what_stays()}"

    def _what_stays(self) -> str:
        data, witness = self.observation.data, self.wanted.witness
        if data.existence is not Existence.PRESENT:
            return f'data topic "{data.name}" is made anew'
        rows = max(self._history.rows_ever, witness.rows if witness else 0)
        wrote = f"this sink wrote {rows:,} rows"
        if any(refusal.reason in _UNCOUNTED for refusal in self.refusals):
            wrote = f"this sink wrote at least {rows:,} rows" if rows else "how many it wrote is unknown"
        return (
            f'data topic "{data.name}" keeps what it holds (up to {data.records:,} records; {wrote}), and '
            "rows that are read again are written again"
        )

    @property
    def _history(self) -> History:
        return self.observation.known

    def _generation(self) -> int:
        return next_generation(self.observation, self.wanted)

    def _positions(self) -> str:
        return offsets(self._history.known_positions())

    def _topics(self, *reasons: Reason) -> str:
        seen = self.observation.topics()
        named = [f'{r.role} "{seen[r.role].name}"' for r in self.refusals if r.reason in reasons]
        return " and ".join(named)


_UNCOUNTED = frozenset(
    {
        Reason.PROGRESS_LOST,
        Reason.PROGRESS_EMPTIED,
        Reason.PROGRESS_EMPTIED_IN_PART,
        Reason.PROGRESS_ROLLED_BACK,
        Reason.GARBAGE,
        Reason.BACKWARDS,
        Reason.CHECKPOINT_AHEAD,
    }
)
"""Where the records do not say what was written."""

_EFFECTS: dict[Way, Callable[[_Situation], str]] = {
    Way.TAKE_OVER: _Situation.take_over,
    Way.ADOPT: _Situation.adopt,
    Way.CONTINUE_WITHOUT_OUTPUT: _Situation.continue_without_output,
    Way.SKIP_LOST: _Situation.skip_lost,
    Way.RESUME_FROM_WITNESS: _Situation.resume_from_witness,
    Way.START_OVER: _Situation.start_over,
}
