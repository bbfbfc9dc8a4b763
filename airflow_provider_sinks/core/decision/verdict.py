"""The verdict: what a start does, or why it does not, with everything that a person or a job needs to act."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from airflow_provider_sinks.core.decision.accept import Offer
from airflow_provider_sinks.core.decision.facts import Creation, Observation
from airflow_provider_sinks.core.decision.reasons.reason import Refusal
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.errors import RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.evolution import NeedsMigration
from airflow_provider_sinks.core.redefinition.compare import Redefinition, RedefinitionState
from airflow_provider_sinks.core.wording import offsets, summary


class VerdictKind(enum.StrEnum):
    """What a start does."""

    START = "start"
    RESUME = "resume"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """What a start does, as data: a dry run prints it, a job carries it out.

    :param actions: what to make, in this order.
    :param migration: how the data output is altered behind that, if at all.
    :param warnings: what a person should know although nothing stops.
    :param offers: with a refusal: the answers that are offered.
    :param accepted: the ways on that were chosen by an accept code.
    :param generation: the generation of the coming run; 0 if there is none.
    :param epoch: the newest epoch of that generation so far.
    :param positions: where each source partition goes on; None means where the spec says that a sink starts.
    :param redefinition: what the spec changes of the one in force; None where none is recorded.
    :param continues_checkpoint: the checkpoint that was looked at is to be used; otherwise a new folder.
    :param rows_before: rows of earlier generations in the data output, for the record that announces the run.
    :param dead_before: dead letters of earlier generations, likewise.
    """

    kind: VerdictKind
    primary: str
    detail: str = ""
    hint: str = ""
    actions: tuple[Creation, ...] = ()
    migration: NeedsMigration | None = None
    warnings: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    offers: tuple[Offer, ...] = ()
    accepted: tuple[WayOn, ...] = ()
    generation: int = 0
    epoch: int = 0
    positions: Mapping[int, int] | None = None
    continues_checkpoint: bool = False
    rows_before: int = 0
    dead_before: int = 0
    redefinition: Redefinition | None = None

    @property
    def goes_on(self) -> bool:
        """The sink may run."""
        return self.kind in (VerdictKind.START, VerdictKind.RESUME)

    def acts(self) -> Iterator[str]:
        """Give what the start would make and alter, for people."""
        yield from map(str, self.actions)
        if self.migration is not None:
            yield from self.migration.told()

    def error(self) -> SinkError | None:
        """Return the error that ends a start, or None if the sink may run; only waiting is worth a retry."""
        if self.goes_on:
            return None
        error = RefusedError if self.kind is VerdictKind.REFUSE else UnavailableError
        return error(self.primary, self.detail, self.hint)

    def demand_start(self) -> Self:
        """Return it if the sink may run.

        :raises SinkError: see :meth:`error`.
        """
        if (error := self.error()) is not None:
            raise error
        return self

    def __str__(self) -> str:
        return str(SinkError(f"{self.kind}: {self.primary}", self.detail, self.hint))


def render(observation: Observation, verdict: Verdict) -> str:
    """Return it for a person: facts first, then the verdict, then what it would do.

    A dry run, a sensor and the job print the same.
    """
    return "\n".join(_lines(observation, verdict))


def _lines(observation: Observation, verdict: Verdict) -> Iterator[str]:
    yield f"seen at {observation.at}:"
    for role, facts in observation.resources().items():
        records = f", {facts.contents}" if facts.high or facts.size_bytes else ""
        yield f"  {role.called(facts.kind) + ':':<18} {facts}{records}"
    yield f"  {'progress:':<18} {_progress(observation)}"
    yield from _spec(verdict)
    if observation.checkpoint is not None:
        found = observation.checkpoint
        yield f"  {'checkpoint:':<18} {found.path}, committed {found.committed}, planned {found.planned}"
    if (memory := observation.memory) is not None:
        yield f"  {memory.heading + ':':<18} {memory}"
    yield f"verdict: {verdict}"
    yield from (f"  action: {action}" for action in verdict.acts())
    yield from (f"  warning: {warning}" for warning in verdict.warnings)


def _spec(verdict: Verdict) -> Iterator[str]:
    """Give what the spec changes, and from where on."""
    if (redefined := verdict.redefinition) is None:
        return
    match redefined.state:
        case RedefinitionState.NOT_COMPARED:
            told = f"not compared with the one in force ({redefined.unread})"
        case RedefinitionState.SAME:
            told = "same as in force"
        case RedefinitionState.GOES_ON if verdict.positions:
            told = f"goes on from source offsets {offsets(verdict.positions)} with what has changed:"
        case state:
            told = f"{state.told} for what has changed:"
    yield f"  {'spec:':<18} {told}"
    yield from (f"    {one}" for one in redefined.differences)


def _progress(observation: Observation) -> str:
    if observation.history is None:
        return f"could not be read ({observation.history_reason})"
    return summary(observation.history)
