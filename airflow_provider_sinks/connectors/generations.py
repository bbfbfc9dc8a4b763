"""Carries out what begins a generation, in the order of a start: look, fence, read, decide, act, announce.

That is a reset, a rewind, or the begin of a replay.

Why nothing of the old run is lost or counted twice:

- The plan that counts is made from what was read behind the fence: nothing follows it (:mod:`.fencing`).
- If the records moved between the look and the fence, a driver is alive. Nothing was written then, and its
  next start goes on as if nothing had happened. A replay takes over from such a driver instead.
- The first record that is written is the announcement, by whoever fenced the driver.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from airflow_provider_sinks.connectors.fencing import Fencing
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation, new_announcement
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
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import summary

READ_SECONDS = 30.0
KEEP_ALL = Reset()
QUIET_SECONDS = 8.0
"""A driver whose task was ended commits for at most the five seconds that Airflow gives it."""
_QUIET_WAIT_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 1.0


class Generations:
    """The records and outputs of one sink, in the hands of a reset or rewind. Use it as a context manager.

    :param spec: the sink.
    :param connections: what its connection ids stand for.
    :param owner: this Airflow.
    :param witness: what it remembers.
    :param read_seconds: how long reading the progress may take.
    :param quiet_seconds: how long nobody may have written before anything is changed.
    """

    def __init__(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        owner: str,
        witness: Witness | None,
        *,
        read_seconds: float = READ_SECONDS,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._spec = spec
        self._owner = owner
        self._witness = witness
        self._quiet_seconds = quiet_seconds
        self._observer = SinkObserver(spec, connections, read_seconds)
        self._target = self._observer.connector
        self._fencing = Fencing(spec, self._target, self._observer.observe)

    def look(self, ask: Reset = KEEP_ALL) -> Situation:
        """Return what there is, without touching anything.

        :param ask: what shall become of the outputs; more is looked at for some answers.
        :raises UnavailableError: a service did not answer.
        """
        return self._situation(self._observer.observe(), ask)

    def offsets_at(self, time_ms: int) -> Mapping[int, int]:
        """Return the offset of the first record of each source partition that is not older than a time.

        :param time_ms: milliseconds since 1970; a partition without such a record is left out.
        """
        return self._observer.source_offsets_at(time_ms)

    def past_epochs(self) -> tuple[PastEpoch, ...]:
        """Return the epochs whose begin the progress place still tells.

        :raises UnavailableError: it could not be read to its end.
        """
        return tuple(self._target.past_epochs())

    def carry_out(
        self, decide: Callable[[Situation], Plan], say: Callable[[str], None], ask: Reset = KEEP_ALL
    ) -> Plan:
        """Do what a decision comes to, and return its plan.

        :param decide: makes the plan; asked once before the fence and once behind it, where it counts.
        :param say: hears of each step when it is done.
        :param ask: as for :meth:`look`.
        :raises RefusedError: a driver was at work meanwhile; nothing was written.
        :raises SinkError: as the decision says, or because a step did not work out.
        """
        looked = self._quiet_look(ask)
        if not (plan := decide(looked)).steps:
            return plan
        situation = self._behind_the_fence(looked, ask)
        _demand_quiet(looked.history, situation.history, self._spec.name)
        return self._done(decide(situation), say)

    def take_over(
        self, decide: Callable[[Situation], Plan], say: Callable[[str], None], ask: Reset = KEEP_ALL
    ) -> Plan:
        """Do the same also while a driver is at work: what it has committed counts, and it commits no more.

        For a plan that goes on from the positions that it is given, and whose announcement refuses the next
        start of that driver. What is behind the fence is all that the driver will ever have done.

        :param decide: as for :meth:`carry_out`, and so are the others.
        :raises SinkError: as the decision says, or because a step did not work out.
        """
        looked = self.look(ask)
        if not (plan := decide(looked)).steps:
            return plan
        return self._done(decide(self._behind_the_fence(looked, ask)), say)

    def act(self, step: Fence | DeleteOutput) -> None:
        """Carry out one step of a drop."""
        if isinstance(step, Fence):
            self._fencing.read_behind(self._observer.observe())
        else:
            self._target.reset(step)

    def close(self) -> None:
        """Drop the clients."""
        self._observer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _situation(self, observation: Observation, ask: Reset) -> Situation:
        settings: dict[Role, Mapping[str, str]] = {}
        for role in (Role.DATA, Role.DEAD_LETTER):
            facts = observation.resources().get(role)
            if facts is None or facts.existence is not Existence.PRESENT:
                continue
            if ask.of(role) is Output.EMPTY:
                seen = self._target.look_closely(role, facts)
                if role is Role.DATA:
                    observation = replace(observation, data=seen)
                else:
                    observation = replace(observation, dead_letter=seen)
            elif ask.of(role) is Output.RECREATE:
                settings[role] = self._target.settings(facts)
        return Situation(self._spec, observation, self._owner, self._witness, settings)

    def _quiet_look(self, ask: Reset) -> Situation:
        """Look when nobody has written for some seconds: a driver that is being ended may commit once more.

        :raises RefusedError: somebody goes on writing.
        """
        deadline = time.monotonic() + _QUIET_WAIT_SECONDS
        while _age_seconds((looked := self.look(ask)).history) < self._quiet_seconds:
            if time.monotonic() > deadline:
                raise _at_work(self._spec.name, f"Its newest progress is {summary(looked.history)}")
            time.sleep(_LOOK_AGAIN_SECONDS)
        return looked

    def _behind_the_fence(self, looked: Situation, ask: Reset) -> Situation:
        return self._situation(self._fencing.read_behind(looked.observation), ask)

    def _done(self, plan: Plan, say: Callable[[str], None]) -> Plan:
        for step in plan.steps:
            self._do(step)
            say(str(step))
        return plan

    def _do(self, step: Step) -> None:
        """Carry out one step; the fence stands already."""
        match step:
            case Fence():
                pass  # what is planned behind it is planned from what was read behind it
            case Create():
                self._target.ensure(step.creation)
            case EmptyOutput() | DeleteOutput():
                self._target.reset(step)
            case Announce():
                self._fencing.announce(new_announcement(self.look(), step, self._fencing.run.id))
            case _:
                raise AssertionError(f"nobody here can do this: {step}")


def _demand_quiet(before: History, after: History, sink: str) -> None:
    """Stop when a driver wrote between the look and the fence."""
    if _newest(before) != _newest(after):
        raise _at_work(sink, f"Its progress moved from {summary(before)} to {summary(after)} meanwhile")


def _at_work(sink: str, seen: str) -> RefusedError:
    return RefusedError(
        f'a driver of sink "{sink}" is at work',
        f"{seen}. Nothing was written; that driver may have to start again.",
        f"Stop the sink first: airflow sinks pause {sink}",
    )


def _newest(history: History) -> tuple[object, ...]:
    in_force = history.in_force
    return history.generation, history.epoch, in_force.run if in_force else ""


def _age_seconds(history: History) -> float:
    """Return how long ago a driver wrote, by two clocks that may differ; long, if none did."""
    written = [datetime.fromisoformat(record.at) for record in history.current.values() if record.at]
    if not written or not history.checkpoint:
        return math.inf
    return abs((datetime.now(UTC) - max(written)).total_seconds())
