"""The verbs of a sink's life: what operators and commands share. Each looks, decides, says, and then acts.

A verb gathers facts (from Airflow by :class:`SinkHomes`, from the target by its connector), gives them to a
pure decision and carries its steps out. With ``dry_run`` it stops before the first step and returns the same
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_sinks.arguments import is_template, parse
from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.connectors.registry import end_types
from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    Problem,
    RefusedError,
    SinkError,
)
from airflow_provider_sinks.core.lifecycle.new_generation import Reset, Situation, plan_reset
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, replaying_sink
from airflow_provider_sinks.core.lifecycle.rewind import AtEpoch, AtOffsets, AtTime, RewindTo, plan_rewind
from airflow_provider_sinks.core.lifecycle.rewind_request import RewindRequest
from airflow_provider_sinks.core.lifecycle.sink_home import SinkHome
from airflow_provider_sinks.core.lifecycle.state_history import HistoryState
from airflow_provider_sinks.core.lifecycle.steps import (
    Announce,
    CopyLetters,
    Create,
    DeleteOutput,
    EmptyOutput,
    Fence,
    Plan,
    Step,
)
from airflow_provider_sinks.core.lifecycle.verbs import (
    demand_stopped,
    outputs_to_delete,
    plan_drop,
    plan_pause,
    plan_restart,
    plan_resume,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.abandoned import living_drivers
from airflow_provider_sinks.drivers.launch_folders import launches_of
from airflow_provider_sinks.hooks.connections import resolve
from airflow_provider_sinks.metadata.sink_homes import SinkHomes

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.generations import Generations
    from airflow_provider_sinks.lifecycle.replays import Begun

Say = Callable[[str], None]
Confirm = Callable[[Plan], None]
Decide = Callable[["Generations", Situation], Plan]

_DRIVER_ENDS_SECONDS = 15.0
_LOOK_AGAIN_SECONDS = 0.5


def _yes(plan: Plan) -> None:
    """Agree to every plan."""


@dataclass(frozen=True)
class SinkVerbs:
    """What can be done to the sinks of one Airflow.

    :param homes: the sinks.
    :param dry_run: only say what would be done.
    :param confirm: sees each plan before its first step; stops it by raising.
    :param say: hears of each step when it is done.
    """

    homes: SinkHomes
    dry_run: bool = False
    confirm: Confirm = _yes
    say: Say = field(default=print)

    def pause(self, sink: str) -> Plan:
        """Let nothing start a sink any more, and end what runs."""
        home = self.homes.one(sink)
        return self._in_airflow(plan_pause(home), None if home.is_orphan else HistoryState.PAUSED)

    def resume(self, sink: str) -> Plan:
        """Let a sink be started again."""
        return self._in_airflow(plan_resume(self.homes.one(sink)))

    def restart(self, sink: str) -> Plan:
        """End the driver of a sink and start another."""
        return self._in_airflow(plan_restart(self.homes.one(sink)))

    def reset(self, sink: str, ask: Reset) -> Plan:
        """Begin a sink anew, where its spec says that it starts."""
        return self._in_target(sink, "reset", lambda _, situation: plan_reset(situation, ask), ask)

    def rewind(self, sink: str, ask: RewindRequest) -> Plan:
        """Let a sink read a part of its source again."""

        def decide(generations: Generations, situation: Situation) -> Plan:
            return plan_rewind(situation, _rewind_to(ask, generations))

        return self._in_target(sink, "rewound", decide, Reset())

    def replay(self, sink: str, ask: ReplayRequest) -> Begun:
        """Begin a replay of dead letters of a sink, which may run meanwhile; what it is must be run then."""
        from airflow_provider_sinks.lifecycle import replays

        base = self.replaying(sink)
        connections = resolve(base, end_types(base))
        with self._generations(base) as generations:
            return replays.begin(
                generations,
                base,
                connections,
                ask,
                dry_run=self.dry_run,
                confirm=self.confirm,
                say=self.say,
            )

    def replaying(self, sink: str) -> SinkSpec:
        """Return the sink that replays the dead letters of another as its DAG names that; not yet which."""
        return replaying_sink(spec_of(self.homes.one(sink)))

    def drop(self, sink: str, topics: Iterable[str] = ()) -> Plan:
        """Stop a sink and forget it; its topics stay but for those that are named.

        A cluster that is away, or a connection that is gone, does not keep a sink whose topics stay: what its
        driver left open there ends by itself after the transaction timeout.
        """
        home = self.homes.one(sink)
        names = list(topics)
        unknown = is_template(home.spec) or not home.spec
        if unknown and not names:  # where its transactions are is known to its task alone
            return self._drop(plan_drop(home, (), {}), None)
        spec = spec_of(home)
        asked = outputs_to_delete(spec, names)
        with ExitStack() as stack:
            try:
                generations = stack.enter_context(self._generations(spec))
                situation = generations.look()
            except SinkError as error:
                if asked:
                    raise
                self.say(f"{error.primary}: what its driver left open there ends by itself")
                return self._drop(plan_drop(home, (), {}), None)
            seen = {role: situation.observation.resources()[role] for role in asked}
            return self._drop(plan_drop(home, situation.writers, seen), generations)

    def _in_airflow(self, plan: Plan, noted: HistoryState | None = None) -> Plan:
        """Carry out a plan that concerns Airflow alone."""
        if plan.steps and not self.dry_run:
            self.confirm(plan)
            for step in plan.steps:
                self._do(step, None)
            if noted is not None:
                self._note(plan.sink, noted)
        return plan

    def _in_target(self, sink: str, verb: str, decide: Decide, ask: Reset) -> Plan:
        """Carry out a plan that begins a new generation; only of a sink at rest."""
        home = self.homes.one(sink)
        demand_stopped(home, verb)
        with self._generations(spec_of(home)) as generations:
            plan = decide(generations, generations.look(ask))
            if self.dry_run or not plan.steps:
                return plan
            self.confirm(plan)
            demand_stopped(self.homes.one(sink), verb)  # a person may have thought for long
            _demand_no_driver_here(sink)
            return generations.carry_out(partial(decide, generations), self.say, ask)

    def _drop(self, plan: Plan, generations: Generations | None) -> Plan:
        if not self.dry_run:
            self.confirm(plan)
            for step in plan.steps:
                self._do(step, generations)
            self._note(plan.sink, HistoryState.DROPPED)
        return plan

    def _do(self, step: Step, generations: Generations | None) -> None:
        """Carry out a step, where it belongs, and say so.

        :param generations: the sink's, where the plan has steps that concern them.
        """
        match step:
            case Fence() | DeleteOutput() if generations is not None:
                generations.act(step)
            case Fence() | DeleteOutput() | Announce() | EmptyOutput() | Create() | CopyLetters():
                raise AssertionError(f"nobody here can do this: {step}")
            case _:
                self.homes.do(step)
        self.say(str(step))

    def _note(self, sink: str, state: HistoryState) -> None:
        try:
            self.homes.note(sink, state)
        except SinkError as error:
            self.say(f"warning: its history does not tell that it is {state}: {error.primary}")

    def _generations(self, spec: SinkSpec) -> Generations:
        from airflow_provider_sinks.connectors.generations import Generations

        memory = self.homes.memory(spec.name)
        return Generations(spec, resolve(spec, end_types(spec)), memory.owner, memory.witness)


def spec_of(home: SinkHome) -> SinkSpec:
    """Return the spec of a sink, as its asset carries it.

    :raises ConfigurationError: it is not valid, or holds templates, which only its task can render.
    """
    if not home.spec:
        raise ConfigurationError(
            f'the spec of sink "{home.name}" is not known',
            [Problem("sink", "is known by what runs or is remembered of it, and no DAG names it")],
            "Put back the DAG file that names it, or give the operator the sink itself.",
        )
    if is_template(home.spec):
        problem = Problem("sink", "holds templates, which only its task can render")
        hint = "Give the operator a spec without templates."
        raise ConfigurationError(
            f'the spec of sink "{home.name}" is not known outside of its task', [problem], hint
        )
    return parse(home.spec)


def _rewind_to(ask: RewindRequest, generations: Generations) -> RewindTo:
    if ask.offsets is not None:
        return AtOffsets(ask.offsets, ask.skip)
    if ask.time_ms is not None:
        return AtTime(ask.time, generations.offsets_at(ask.time_ms))
    return AtEpoch(ask.epoch or 0, generations.past_epochs(), ask.generation)


def _demand_no_driver_here(sink: str) -> None:
    """Wait a little for the end of a driver on this very machine, whose task was ended a moment ago.

    :raises RefusedError: it lives on.
    """
    living = look_until(
        lambda: living_drivers(launches_of(sink)),
        lambda living: not living,
        _DRIVER_ENDS_SECONDS,
        pause_seconds=_LOOK_AGAIN_SECONDS,
    )
    if living:
        raise RefusedError(
            f'a driver of sink "{sink}" lives on this machine',
            f"Processes {', '.join(str(driver.pid) for driver in living)}; their tasks are over.",
            "Look into the newest launch directory of the sink; end the process if nothing else does.",
        )
