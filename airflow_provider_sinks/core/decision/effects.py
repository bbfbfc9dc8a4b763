"""What each way on will do, in numbers: a person reads it before choosing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.decision.positions import next_generation, positions_of_records
from airflow_provider_sinks.core.decision.reasons.reason import Refusal
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.wording import count, offsets, remembered, summary


@dataclass(frozen=True)
class Effects:
    """What the ways on will do in one situation; each method tells of one way."""

    observation: Observation
    request: StartRequest
    refusals: Sequence[Refusal]

    def of(self, way: WayOn) -> str:
        """Return what a way on will do."""
        return _EFFECTS[way](self)

    def take_over(self) -> str:
        """Say what taking over does."""
        return "make this Airflow the owner and fence the other one's writers; stop the sink there first"

    def adopt(self) -> str:
        """Say what adopting does."""
        taken = self._refused(WayOn.ADOPT)
        return f"take {taken} as it is for the recorded one and resume at offsets {self._positions()}"

    def go_on_changed(self) -> str:
        """Say what going on with a changed spec does."""
        return (
            f"go on in generation {self._history.generation} at offsets {self._positions()} by the spec as "
            f"it is now; what was written ({summary(self._history)}) stays as it is"
        )

    def continue_without_output(self) -> str:
        """Say what continuing without the output does."""
        lost = self._refused(WayOn.CONTINUE_WITHOUT_OUTPUT)
        return (
            f"make {lost} anew, empty, and resume at offsets {self._positions()}; what was written "
            f"({summary(self._history)}) is not written again"
        )

    def skip_lost(self) -> str:
        """Say what skipping the lost records does."""
        return f'resume where source topic "{self.request.source}" begins now; what was removed is left out'

    def resume_from_records(self) -> str:
        """Say what resuming from the records does."""
        positions = positions_of_records(self.observation, self.request) or {}
        own = self._history.own_positions() or {}
        removed = sum(at - own.get(partition, at) for partition, at in positions.items())
        left = summary(self._history.first_hand())
        gone = f"; {count(removed, 'record')} of the source before it were removed" if removed > 0 else ""
        return (
            f"begin generation {self._generation()} at offsets {offsets(positions)}, where the records that "
            f"are left end: {left}{gone}; what was written after them, and is still there, "
            "is written again"
        )

    def resume_from_witness(self) -> str:
        """Say what resuming from the witness does."""
        begin = offsets(self.request.witness.offsets) if self.request.witness else ""
        return (
            f"begin generation {self._generation()} at offsets {begin}, where Airflow's witness stands: "
            f"{remembered(self.request.witness)}; what was written after it may be written again"
        )

    def start_over(self) -> str:
        """Say what starting over does."""
        begin = f'begin generation {self._generation()} at {self.request.start} of "{self.request.source}"'
        return f"{begin}; {self._what_stays()}"

    def _what_stays(self) -> str:
        data, witness = self.observation.data, self.request.witness
        if data.existence is not Existence.PRESENT:
            return f"{data.title(Role.DATA)} is made anew"
        rows = max(self._history.rows_ever, witness.rows_ever if witness else 0)
        wrote = f"this sink wrote {rows:,} rows"
        if not all(refusal.reason.entry.counts for refusal in self.refusals):
            wrote = f"this sink wrote at least {rows:,} rows" if rows else "how many it wrote is unknown"
        return (
            f"{data.title(Role.DATA)} keeps what it holds ({data.contents}; {wrote}), and "
            "rows that are read again are written again"
        )

    @property
    def _history(self) -> History:
        return self.observation.known

    def _generation(self) -> int:
        return next_generation(self.observation, self.request)

    def _positions(self) -> str:
        return offsets(self._history.known_positions())

    def _refused(self, way: WayOn) -> str:
        """Name what is refused and settled by a way."""
        found = self.observation.resources()
        roles = [refusal.role for refusal in self.refusals if way in refusal.reason.entry.ways]
        return " and ".join(found[role].title(role) for role in roles)


_EFFECTS: dict[WayOn, Callable[[Effects], str]] = {
    WayOn.TAKE_OVER: Effects.take_over,
    WayOn.ADOPT: Effects.adopt,
    WayOn.GO_ON_CHANGED: Effects.go_on_changed,
    WayOn.CONTINUE_WITHOUT_OUTPUT: Effects.continue_without_output,
    WayOn.SKIP_LOST: Effects.skip_lost,
    WayOn.RESUME_FROM_RECORDS: Effects.resume_from_records,
    WayOn.RESUME_FROM_WITNESS: Effects.resume_from_witness,
    WayOn.START_OVER: Effects.start_over,
}
