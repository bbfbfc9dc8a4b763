"""A new generation of a sink, on purpose: how a reset or a rewind begins one. Pure: facts in, steps out.

Both fence before they write, and both end with the driver's record of the new generation: older progress can
never be mistaken for newer, because generations are compared first. The next start reads that record and goes
on from it with a checkpoint of its own.

Why a crash in the middle does no harm: until the new generation is announced nothing has changed but that old
producers are fenced. Where outputs are emptied or made anew, the generation is announced as unfinished before
the first record is lost, and a start between then and the end is refused. The same command, run again, begins
a generation after that one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.core.decision.announcement import Beginning, announcement, every_writer
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import (
    Existence,
    Observation,
    ResourceFacts,
    Role,
    demand_makeable,
)
from airflow_provider_sinks.core.decision.positions import next_generation
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.reason import Refusal
from airflow_provider_sinks.core.decision.start import dead_left, missing_outputs, rows_left
from airflow_provider_sinks.core.decision.start_request import StartRequest, start_request
from airflow_provider_sinks.core.decision.stop import wait
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, RefusedError, UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import (
    Announce,
    Create,
    DeleteOutput,
    EmptyOutput,
    Fence,
    Plan,
    Step,
)
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from airflow_provider_sinks.core.progress.source_range import start_positions
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec

UNFINISHED = "unfinished-reset"
"""Stands for the id of an output that is being emptied or made anew; none has it."""


class Output(enum.StrEnum):
    """What becomes of an output."""

    KEEP = "keep"
    EMPTY = "empty"
    RECREATE = "recreate"


@dataclass(frozen=True)
class Reset:
    """Begin again where the spec says that the sink starts."""

    data: Output = Output.KEEP
    dead_letter: Output = Output.KEEP

    def of(self, role: Role) -> Output:
        """Return what becomes of an output."""
        return {Role.DATA: self.data, Role.DEAD_LETTER: self.dead_letter}.get(role, Output.KEEP)


@dataclass(frozen=True)
class Situation:
    """What a new generation is decided from.

    :param observation: what was seen; also why an output keeps its records, where it is to be emptied.
    :param owner: this Airflow.
    :param witness: what it remembers.
    :param settings: what an administrator has set for an output, to be kept where it is made anew.
    """

    spec: SinkSpec
    observation: Observation
    owner: str
    witness: Witness | None = None
    settings: Mapping[Role, Mapping[str, str]] = field(default_factory=dict)

    @property
    def request(self) -> StartRequest:
        """What a start asks for."""
        return start_request(self.spec, self.owner, self.witness)

    @property
    def history(self) -> History:
        """What the records say."""
        return self.observation.known

    @property
    def writers(self) -> tuple[WriterId, ...]:
        """Every writer that may have something open: those of the spec, and those that records name."""
        return every_writer(self.spec, self.observation)


def plan_reset(situation: Situation, ask: Reset) -> Plan:
    """Return the steps that begin the sink anew; none if it never did anything.

    :raises UnavailableError: something could not be seen.
    :raises RefusedError: what is seen must be mended first.
    :raises ConfigurationError: what is asked for cannot be done.
    """
    sink, observation = situation.spec.name, situation.observation
    verdict = decide(observation, situation.request)
    demand_settled(verdict, settles=lambda refusal: _settles(refusal, ask, observation))
    demand_seen(verdict, situation)
    if verdict.kind is VerdictKind.START and verdict.generation == 1:
        return Plan(sink, f'sink "{sink}" has no progress: there is nothing to reset')
    _demand_emptiable(situation, ask)
    positions = start_positions(situation.spec.source.kafka.start, observation.source)
    number = next_generation(observation, situation.request)
    what = _begins(situation, number)
    return Plan(sink, what, generation_steps(situation, number, positions, ask), tuple(_kept(situation, ask)))


def generation_steps(
    situation: Situation, number: int, positions: Mapping[int, int], ask: Reset
) -> tuple[Step, ...]:
    """Return the steps that begin a generation.

    :param positions: where each source partition goes on.
    :param ask: what becomes of the outputs.
    """
    observation, request = situation.observation, situation.request
    changed = {
        role: facts
        for role, facts in observation.resources().items()
        if ask.of(role) is not Output.KEEP and facts.existence is Existence.PRESENT
    }
    rows = 0 if Role.DATA in changed else rows_left(observation, request)
    dead = 0 if Role.DEAD_LETTER in changed else dead_left(observation, request)
    steps: list[Step] = [Fence(situation.writers), *map(Create, missing_outputs(observation, request))]
    if changed:
        steps.append(Announce(number, positions, rows, dead, tuple(changed), observation.data.kind))
    for role, facts in changed.items():
        steps += _anew(role, facts, ask.of(role), situation)
    for step in steps:
        if isinstance(step, Create):
            demand_makeable(step.creation, observation.data.kind)
    return (*steps, Announce(number, positions, rows, dead))


def _settles(refusal: Refusal, ask: Reset, observation: Observation) -> bool:
    """Return whether a new beginning settles it: as the way on of that name does, or by making it anew."""
    is_made_anew = refusal.reason is OutputReason.OUTPUT_UNFIT and ask.of(refusal.role) is Output.RECREATE
    found = observation.resources().get(refusal.role)
    is_others = found is not None and found.unfit is not None and found.unfit.is_others
    return (is_made_anew and not is_others) or WayOn.START_OVER in refusal.reason.entry.ways


def demand_settled(verdict: Verdict, settles: Callable[[Refusal], bool]) -> None:
    """Stop for what the new generation does not settle.

    :param settles: says whether it settles a refusal.
    :raises RefusedError: in the words of a start that is refused.
    """
    if any(not settles(refusal) for refusal in verdict.refusals):
        raise RefusedError(verdict.primary, verdict.detail, verdict.hint)


def demand_seen(verdict: Verdict, situation: Situation) -> None:
    """Stop where anything could not be seen: what is asked for cannot be taken back.

    :raises UnavailableError: with what could not be seen.
    """
    observation = situation.observation
    hidden = {r for r, facts in observation.resources().items() if facts.existence is Existence.UNKNOWN}
    if observation.history is None:
        hidden.add(Role.PROGRESS)
    unseen = wait(hidden, observation, situation.request) if hidden else verdict
    if unseen.kind is VerdictKind.WAIT:
        raise UnavailableError(unseen.primary, unseen.detail, unseen.hint)


def new_announcement(situation: Situation, step: Announce, run: str) -> ProgressRecord:
    """Return the driver's record of a new generation.

    It names no checkpoint: the next start makes one of its own, because Spark ignores start offsets where a
    checkpoint exists.

    :param situation: as it is now, with every resource there.
    :param run: the uuid of this reset or rewind.
    :raises UnavailableError: one is not there.
    """
    spec = situation.spec if step.replay is None else situation.spec.with_replay(step.replay)
    beginning = Beginning(
        step.generation,
        step.positions,
        rows_before=max(step.rows_before, int(Role.DATA in step.unfinished)),
        dead_before=max(step.dead_before, int(Role.DEAD_LETTER in step.unfinished)),
    )
    record = announcement(spec, situation.owner, run, situation.observation, beginning)
    return replace(record, identities=_without_ids(record.identities, step.unfinished))


def _without_ids(identities: Identities, unfinished: Collection[Role]) -> Identities:
    """Return identities that no start finds, for the outputs that are still to be emptied or made anew."""
    data, dead_letter = identities.data, identities.dead_letter
    if Role.DATA in unfinished:
        data = replace(data, id=UNFINISHED)
    if Role.DEAD_LETTER in unfinished and dead_letter is not None:
        dead_letter = replace(dead_letter, id=UNFINISHED)
    return replace(identities, data=data, dead_letter=dead_letter)


def _begins(situation: Situation, number: int) -> str:
    start, source = situation.request.start, situation.observation.source.name
    return f'sink "{situation.spec.name}" begins generation {number} at {start} of "{source}"'


def _anew(role: Role, facts: ResourceFacts, output: Output, situation: Situation) -> Iterator[Step]:
    if output is Output.EMPTY:
        yield EmptyOutput(facts.title(role), facts)
        return
    asked = situation.request.creations()[role]
    yield DeleteOutput(facts.title(role), facts)
    yield Create(asked.anew(facts, situation.settings.get(role, {})))


def _demand_emptiable(situation: Situation, ask: Reset) -> None:
    for role, facts in situation.observation.resources().items():
        if ask.of(role) is Output.EMPTY and facts.keeps is not None:
            title, keeps = role.called(facts.kind), facts.keeps
            problem = Problem(title, f'"{facts.name}" {keeps.what}', keeps.repair)
            raise ConfigurationError(keeps.why, [problem])


def _kept(situation: Situation, ask: Reset) -> Iterator[str]:
    data = situation.observation.data
    if ask.data is Output.KEEP and data.existence is Existence.PRESENT and not data.is_empty:
        kept = f"{data.title(Role.DATA)} keeps what it holds ({data.contents})"
        yield f"{kept}; rows read again are written again"
