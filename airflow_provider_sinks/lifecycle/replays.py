"""Begins a replay of dead letters: what CLI, operator and form share. The job that runs it is any sink's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.replay import Replay
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, begun, plan_replay
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import count

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.generations import Generations

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

    def decide(situation: Situation) -> Plan:
        plan = plan_replay(situation, ask)
        decided.append(begun(plan, situation))
        return plan

    plan = decide(generations.look(LOOK))
    errors = _errors(base, connections, decided[-1])
    if plan.steps and not errors:
        what = f'there is no dead letter of sink "{decided[-1].sink}" to replay: {ask.selection}'
        return Begun(Plan(base.name, what), None)
    if plan.steps and not dry_run:
        confirm(_told(plan, errors))
        plan = generations.carry_out(decide, say, LOOK)
    return Begun(_told(plan, errors), base.with_replay(decided[-1]))


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


def _errors(base: SinkSpec, connections: ResolvedConnections, replay: Replay) -> Counter[str]:
    """Count the letters that a replay takes, by the class of their error."""
    from airflow_provider_sinks.connectors.stored_letters import stored_letters

    with stored_letters(base, connections) as letters:
        return Counter(
            letter.error_class.value
            for letter in letters.all()
            if letter.is_of(replay.sink, replay.topic)
            and letter.can_be_replayed
            and replay.takes(letter.error, letter.told_class, letter.at_ms, letter.place)
        )


def _told(plan: Plan, errors: Counter[str]) -> Plan:
    """Return a plan that tells how many letters it takes, where it begins something."""
    if not plan.steps:
        return plan
    by_class = ", ".join(f"{number:,} {name}" for name, number in errors.most_common())
    return replace(plan, what=f"{plan.what}: {count(errors.total(), 'letter')} ({by_class})")
