"""The plan of a replay: what a person asks for, and the generation that it begins. Pure.

A replay that was left unfinished and is asked for again goes on where it stands. Anything else begins a new
generation, whose bounds leave out what earlier ones took (:mod:`.core.dead_letters.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection, replay_data, replay_of, within
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.decision.positions import next_generation
from airflow_provider_sinks.core.decision.reasons.reason import Refusal
from airflow_provider_sinks.core.decision.reasons.source import SourceReason
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, RefusedError
from airflow_provider_sinks.core.lifecycle.new_generation import (
    Reset,
    Situation,
    demand_seen,
    generation_steps,
)
from airflow_provider_sinks.core.lifecycle.rewind_request import offset_ranges, time_in_ms
from airflow_provider_sinks.core.lifecycle.steps import Announce, Plan, Step
from airflow_provider_sinks.core.spec.sink import SinkSpec

_SETTLED = (SourceReason.SOURCE_REPLACED, SourceReason.RECORDS_REMOVED)
"""Another dead-letter topic holds other letters; those that are gone cannot be replayed.

Copies are another matter: those that are gone are made again, and which were taken is not known any more.
"""
_LOST = (SourceReason.SOURCE_SHORTER, SourceReason.SOURCE_REWRITTEN)
"""Other letters may have the offsets of those that were taken."""


@dataclass(frozen=True)
class ReplayRequest:
    """What a person asks for.

    :param overwrite: a replayed row may take the place of a newer one of its key.
    :param forget: where nobody knows any more what earlier replays took, it may be taken again.
    """

    selection: Selection
    overwrite: bool = False
    forget: bool = False

    @classmethod
    def parse(
        cls,
        *,
        error: Any = None,
        since: Any = None,
        before: Any = None,
        offsets: Any = None,
        overwrite: bool = False,
        forget: bool = False,
    ) -> ReplayRequest:
        """Read what was asked for; an empty text is nothing, as in a form.

        :param error: a class of errors or a part of their text, or a list of them.
        :param since: ISO 8601 with the zone; set aside then or later.
        :param before: likewise; set aside before.
        :param offsets: of the dead-letter topic, such as ``0:120-140, 1:7``.
        :raises ConfigurationError: with all problems.
        """
        problems: list[Problem] = []
        errors = [error] if isinstance(error, str) else list(error or ())
        selection = Selection(
            errors=tuple(text.strip() for text in errors if text.strip()),
            since_ms=time_in_ms(since, problems, "since") if since else None,
            before_ms=time_in_ms(before, problems, "before") if before else None,
            offsets=offset_ranges(offsets, problems) if offsets else {},
        )
        if problems:
            raise ConfigurationError("it is not clear which dead letters to take", problems)
        return cls(selection, overwrite, forget)


def replaying_sink(spec: SinkSpec) -> SinkSpec:
    """Return the sink that replays the dead letters of a sink; which ones is still to be said.

    :raises ConfigurationError: they cannot be replayed.
    """
    if spec.replay is not None:
        raise ConfigurationError(
            f'sink "{spec.name}" is a replay itself',
            [Problem("sink", f"replay {spec.replay.sink!r} instead")],
        )
    if not spec.shape.row_wise:
        what = "is not row-wise: a letter alone does not lead to the rows that it would have led to"
        raise ConfigurationError(
            f'dead letters of sink "{spec.name}" cannot be replayed',
            [Problem("query", what)],
            "Mend the spec, and let the sink read its source again: airflow sinks rewind.",
        )
    replay = Replay(sink=spec.name, topic=spec.source_topic)
    return SinkSpec.parse(replay_data(spec.to_mapping(), replay, spec.letters_to_read))


def replayable(spec: SinkSpec) -> Selection | None:
    """Return what can be replayed of the dead letters of a sink; ``None`` for nothing."""
    try:
        replaying_sink(spec)
    except ConfigurationError:
        return None
    return within(Selection(), may_multiply=spec.shape.may_multiply)


def plan_replay(situation: Situation, ask: ReplayRequest) -> Plan:
    """Return the steps that begin a replay; none if one like it is under way, and goes on.

    :raises UnavailableError: something could not be seen.
    :raises RefusedError: what is seen must be mended first, or old values would replace newer ones.
    """
    spec, observation = situation.spec, situation.observation
    selection = within(ask.selection, may_multiply=spec.shape.may_multiply)
    _demand_replay(situation)
    verdict = decide(observation, situation.request)
    _demand_settled(verdict, situation, ask)
    demand_seen(verdict, situation)
    _demand_no_older_over_newer(situation, ask)
    left = None if verdict.refusals else unfinished(situation)
    if left is not None and (left.selection, left.gone) == (selection, _own(situation).gone):
        what = f'sink "{spec.name}" goes on with the replay that it has begun: {selection}'
        return Plan(spec.name, what)
    has_lost = any(refusal.reason in _LOST for refusal in verdict.refusals)
    replay = _replay(situation, selection, knows_taken=not has_lost)
    low = dict(observation.source.low)
    number = next_generation(observation, situation.request)
    steps = generation_steps(situation, number, low, Reset())
    what = f'sink "{spec.name}" replays dead letters of sink "{replay.sink}": {selection}'
    return Plan(
        spec.name, what, tuple(_with_replay(step, replay) for step in steps), tuple(_warnings(situation))
    )


def begun(plan: Plan, situation: Situation) -> Replay:
    """Return the replay that a plan begins, or that it leaves under way."""
    announced = [step.replay for step in plan.steps if isinstance(step, Announce) and step.replay]
    found = announced[-1] if announced else recorded(situation)
    assert found is not None  # noqa: S101  a plan without steps goes on with what is recorded
    return found


def recorded(situation: Situation) -> Replay | None:
    """Return the newest replay that the records tell of."""
    in_force = situation.history.in_force
    return replay_of(in_force.spec) if in_force else None


def unfinished(situation: Situation) -> Replay | None:
    """Return a replay that was begun and is not whole, of the topic that is still there."""
    found = recorded(situation)
    if found is None or not _is_same_topic(situation) or found.is_whole(_positions(situation)):
        return None
    return found


def demand_announced(spec: SinkSpec, recorded_spec: str) -> None:
    """Refuse a launch of a replay whose bounds are not those that were announced.

    :param recorded_spec: of the driver's record, read behind the fence.
    :raises RefusedError: another replay was begun since, or none.
    """
    if spec.replay is not None and replay_of(recorded_spec) != spec.replay:
        raise RefusedError(
            f'the replay of sink "{spec.replay.sink}" that this launch is for is not in force',
            "Another one was begun since, or its progress is gone. Nothing was written.",
            f"Begin it again: airflow sinks dead-letters replay {spec.replay.sink}",
        )


def _replay(situation: Situation, selection: Selection, *, knows_taken: bool) -> Replay:
    """Return what the new generation replays.

    :param knows_taken: the letters that were taken still are those at their offsets.
    """
    before, own = recorded(situation), _own(situation)
    topic, identities = situation.observation.source.identity.told_apart, situation.history.identities
    taken = before.after(_positions(situation), identities.source.told_apart) if before and identities else ()
    return own.model_copy(
        update={
            "selection": selection,
            "until": dict(situation.observation.source.high),
            "done": tuple(one for one in taken if one.topic == topic and knows_taken),
            "elsewhere": tuple(one for one in taken if one.topic != topic),
        }
    )


def _own(situation: Situation) -> Replay:
    """Return what is known of a replay before it is said which letters it takes."""
    own = situation.spec.replay
    assert own is not None  # noqa: S101  the sink of a replay
    return own


def _positions(situation: Situation) -> dict[int, int]:
    """Return what is proved: a writer that had no row in the newest epoch may have looked further."""
    return situation.history.known_positions()


def _is_same_topic(situation: Situation) -> bool:
    identities, source = situation.history.identities, situation.observation.source
    return identities is not None and source.identity.compared_with(identities.source).is_same


def _with_replay(step: Step, replay_: Replay) -> Step:
    return replace(step, replay=replay_) if isinstance(step, Announce) else step


def _demand_replay(situation: Situation) -> None:
    """Leave alone a sink that happens to have the name of a replay.

    :raises ConfigurationError: there is one.
    """
    in_force, name = situation.history.in_force, situation.spec.name
    if in_force is not None and replay_of(in_force.spec) is None:
        problem = Problem("name", f"{name!r} is another sink, which has progress of its own")
        raise ConfigurationError("the dead letters cannot be replayed under this name", [problem])


def _demand_settled(verdict: Verdict, situation: Situation, ask: ReplayRequest) -> None:
    """Stop for what a new generation of the replay does not settle.

    Outputs that were made anew are judged by the start of the sink itself. That its own progress is gone, or
    was rolled back, is a reason to stop: it tells which letters were taken.

    :raises RefusedError: in the words of a start that is refused, with the replay's own way on.
    """
    resources = situation.observation.resources()
    settled = () if _own(situation).copied else _SETTLED

    def settles(refusal: Refusal) -> bool:
        starts_over = WayOn.START_OVER in refusal.reason.entry.ways
        is_output = refusal.role in (Role.DATA, Role.DEAD_LETTER)
        is_made_anew = is_output and resources[refusal.role].existence is Existence.PRESENT
        return refusal.reason in settled or (starts_over and (is_made_anew or ask.forget))

    if any(not settles(refusal) for refusal in verdict.refusals):
        raise RefusedError(
            verdict.primary,
            verdict.detail,
            "Which letters earlier replays took stands there. To take them again where it is not "
            "known any more: forget.",
        )


def _demand_no_older_over_newer(situation: Situation, ask: ReplayRequest) -> None:
    data, spec = situation.observation.data, situation.spec
    if (data.newest_of_key_wins or spec.keeps_one_row_of_a_key) and not ask.overwrite:
        raise RefusedError(
            f"{data.title(Role.DATA)} keeps the newest row of each key, which a replayed row would be",
            "A row that was written since the record was set aside would be replaced by the older one.",
            "If no newer rows of these keys can be there, or the older ones shall win, say so: overwrite.",
        )


def _warnings(situation: Situation) -> Iterator[str]:
    if situation.spec.target.options.model_dump().get("key"):
        yield "replayed rows come behind rows of the same key that were written since"
