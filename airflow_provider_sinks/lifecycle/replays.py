"""Begins a replay of dead letters: what CLI, operator and form share. The job that runs it is any sink's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.replay import Replay, within
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, begun, plan_replay
from airflow_provider_sinks.core.lifecycle.steps import CopyLetters, Plan
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import count

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.generations import Generations
    from airflow_provider_sinks.lifecycle.letters_to_replay import LettersToReplay

LOOK = Reset(data=Output.EMPTY)
"""Looks whether the data output keeps the newest row of each key; nothing is emptied by it."""


@dataclass(frozen=True)
class Begun:
    """A replay that was begun, or would be.

    :param sink: what is to be run, until it is done; ``None`` where there is nothing to replay.
    """

    plan: Plan
    sink: SinkSpec | None


def begin(
    generations: Generations,
    base: SinkSpec,
    connections: ResolvedConnections,
    ask: ReplayRequest,
    *,
    dry_run: bool = False,
    confirm: Callable[[Plan], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Begun:
    """Begin a replay, or say what would be begun.

    :param generations: the records of the replaying sink.
    :param base: that sink, without bounds.
    :param connections: of its target.
    :param confirm: sees the plan before its first step; stops it by raising.
    :param say: hears of each step when it is done.
    :raises SinkError: it cannot be begun; nothing was written.
    """
    decided: list[Replay] = []

    with _letters(base, connections, ask) as letters:

        def decide(situation: Situation) -> Plan:
            situation = letters.with_gone(situation)
            plan = plan_replay(situation, ask)
            decided.append(begun(plan, situation))
            return plan

        situation = letters.foreseen(generations.look(LOOK))
        plan, copying = decide(situation), letters.copying(situation)
        counted = CountedLetters.of(letters.all(), decided[-1])
        if plan.steps and not counted.taken:
            what = f'there is no dead letter of sink "{decided[-1].sink}" to replay: {decided[-1].selection}'
            return Begun(Plan(base.name, what, warnings=counted.warnings), None)
        if plan.steps and not dry_run:
            confirm(counted.told(plan, copying))
            if copying is not None:
                letters.copy()
                say(str(copying))
            plan = generations.take_over(decide, say, LOOK)
    return Begun(counted.told(plan, copying), base.with_replay(decided[-1]))


@contextmanager
def _letters(
    base: SinkSpec, connections: ResolvedConnections, ask: ReplayRequest
) -> Iterator[LettersToReplay]:
    from airflow_provider_sinks.connectors.stored_letters import letter_copies, stored_letters
    from airflow_provider_sinks.lifecycle.letters_to_replay import LettersToReplay

    selection = within(ask.selection, may_multiply=base.shape.may_multiply)
    is_copied = base.replay is not None and base.replay.copied
    with ExitStack() as stack:
        stored = stack.enter_context(stored_letters(base, connections))
        copies = stack.enter_context(letter_copies(base, connections)) if is_copied else None
        yield LettersToReplay(base, stored, copies, selection)


def as_begun(base: SinkSpec, begun: object) -> SinkSpec:
    """Return the sink that runs a replay: its bounds are all that is taken from what somebody handed over.

    :param base: the replaying sink of a sink that is known, without bounds.
    :param begun: the sink that :func:`begin` gave, as a mapping or its JSON text, or anything else.
    :raises ConfigurationError: there are no bounds in it.
    """
    try:
        found = json.loads(begun) if isinstance(begun, str) else begun
        bounds = Replay.model_validate(found["replay"])  # type: ignore[index]
    except (ValueError, TypeError, KeyError, ValidationError):
        raise ConfigurationError(
            f'it is not known which dead letters sink "{base.name}" takes',
            [Problem("begun", "is not what BeginReplayOperator returns as replay")],
            "Clear the task that begins the replay.",
        ) from None
    return base.with_replay(bounds)


@dataclass(frozen=True)
class CountedLetters:
    """The letters of a replay.

    :param taken: how many it takes, by the class of their error.
    :param of_several: how many it leaves out because other rows of their records may be written.
    """

    taken: Counter[str]
    of_several: int = 0

    @classmethod
    def of(cls, letters: Iterable[Letter], replay: Replay) -> CountedLetters:
        """Count letters, which may be those of other sinks too."""
        taken, of_several = Counter[str](), 0
        for letter in letters:
            if letter.is_of(replay.sink, replay.topic) and letter.holds_record:
                is_taken = letter.can_be_replayed and replay.takes(letter)
                taken[letter.error_class.value] += is_taken
                of_several += not is_taken and replay.of_any_record().takes(letter)
        return cls(+taken, of_several)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is left out, and why."""
        if not self.of_several:
            return ()
        why = "the query makes several rows of a record, or did, and others of them may be written"
        return (f"{count(self.of_several, 'letter')} left out: {why}",)

    def told(self, plan: Plan, copying: CopyLetters | None) -> Plan:
        """Return a plan that tells how many letters it takes, where it begins something.

        :param copying: the step before the others.
        """
        if not plan.steps:
            return plan
        by_class = ", ".join(f"{number:,} {name}" for name, number in self.taken.most_common())
        what = f"{plan.what}: {count(self.taken.total(), 'letter')} ({by_class})"
        steps = plan.steps if copying is None else (copying, *plan.steps)
        return replace(plan, what=what, steps=steps, warnings=(*plan.warnings, *self.warnings))
