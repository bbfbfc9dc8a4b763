"""Pause, resume, restart and drop: what each comes to, as a list of steps. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, RefusedError, nearest
from airflow_provider_sinks.core.lifecycle.sink_home import SinkHome
from airflow_provider_sinks.core.lifecycle.steps import (
    ClearTask,
    DeleteOutput,
    EndTask,
    Fence,
    Forget,
    PauseDag,
    Plan,
    StartRun,
    Step,
    UnpauseDag,
)
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec


def plan_pause(home: SinkHome) -> Plan:
    """Let nothing start the sink any more, and end what runs; none if it is paused.

    Of an orphan there is nothing to pause: what runs is ended.
    """
    steps = tuple(_stop(home))
    done = "has been ended; no DAG runs it" if home.is_orphan else "is paused"
    what = f'sink "{home.name}" {done}' if steps else f'sink "{home.name}" is paused already'
    return Plan(home.name, what, steps)


def plan_resume(home: SinkHome) -> Plan:
    """Let the sink be started again, and start it where no schedule does; none if it is not paused.

    :raises RefusedError: no DAG runs it.
    """
    if not home.dags:
        raise RefusedError(
            f'no DAG of this Airflow runs sink "{home.name}"',
            "It is known by what runs, or by what is remembered of it.",
            "Put back the DAG file that names it.",
        )
    steps: list[Step] = [UnpauseDag(dag.dag_id, dag.others) for dag in home.dags if dag.is_paused]
    if not home.tasks:
        steps += [StartRun(dag.dag_id) for dag in home.dags if not dag.schedule]
    what = f'sink "{home.name}" goes on' if steps else f'sink "{home.name}" is not paused'
    return Plan(home.name, what, tuple(steps))


def plan_restart(home: SinkHome) -> Plan:
    """End the sink's driver and start another.

    :raises RefusedError: nothing runs that could be started again, or nobody could start it.
    """
    if home.is_orphan:
        raise RefusedError(
            f'sink "{home.name}" is orphaned: it runs, and no DAG names it, so nothing would start it again',
            "; ".join(map(str, (*home.tasks, *home.drivers))),
            f"To end it: airflow sinks pause {home.name}. To keep it, put back the DAG file that names it.",
        )
    if not home.tasks:
        raise RefusedError(
            f'sink "{home.name}" does not run, so there is nothing to start again',
            f"It is {home.standing.state}.",
            f"To start it: airflow sinks resume {home.name}",
        )
    steps = tuple(ClearTask(task.key) for task in home.tasks)
    return Plan(home.name, f'sink "{home.name}" starts again', steps)


def demand_stopped(home: SinkHome, verb: str) -> None:
    """Refuse what may be done to a sink at rest only.

    :param verb: what shall be done, such as ``rewound``.
    :raises RefusedError: a task of the sink is not over, so that its driver lives or may live in a moment.
    """
    if home.tasks:
        raise RefusedError(
            f'sink "{home.name}" is not stopped, and only a stopped sink can be {verb}',
            "; ".join(map(str, home.tasks)),
            f"Stop it first: airflow sinks pause {home.name}",
        )


def plan_drop(home: SinkHome, writers: Collection[WriterId], topics: Mapping[Role, ResourceFacts]) -> Plan:
    """Stop the sink and forget it.

    :param writers: every writer that may have a transaction open; none where that cannot be known.
    :param topics: those that shall be deleted with it, as they are.
    """
    there = {role: facts for role, facts in topics.items() if facts.existence is Existence.PRESENT}
    steps = [
        *_stop(home),
        *([Fence(tuple(writers))] if writers else []),
        *(DeleteOutput(facts.title(role), facts) for role, facts in there.items()),
        Forget(home.name),
    ]
    return Plan(home.name, f'sink "{home.name}" is dropped', tuple(steps), tuple(_left(home, topics)))


def outputs_to_delete(spec: SinkSpec, names: Iterable[str]) -> dict[Role, str]:
    """Return the outputs that were asked for by name, by what they are to the sink.

    :raises ConfigurationError: with every name that is not an output of this sink alone.
    """
    own = spec.resources
    asked = list(dict.fromkeys(names))
    problems = [
        Problem(name, why, nearest(name, own.values()))
        for name in asked
        if (why := _why_not(name, spec, own))
    ]
    if problems:
        raise ConfigurationError(f'not all of that can be deleted with sink "{spec.name}"', problems)
    return {role: name for role, name in own.items() if name in asked}


def _why_not(name: str, spec: SinkSpec, own: Mapping[Role, str]) -> str:
    if name == spec.source_topic:
        return "is its source, which is not its to delete"
    if name not in own.values():
        return "is nothing of its own"
    if name == own[Role.PROGRESS] and spec.progress_is_shared:
        return "is named by the spec as its progress: other sinks may have theirs in it"
    return ""


def _stop(home: SinkHome) -> Iterator[Step]:
    yield from (PauseDag(dag.dag_id, dag.others) for dag in home.dags if not dag.is_paused)
    yield from (EndTask(task.key) for task in home.tasks)
    if home.is_orphan or not home.tasks:  # else each ends with its task
        yield from home.drivers


def _left(home: SinkHome, topics: Mapping[Role, ResourceFacts]) -> Iterator[str]:
    if Role.PROGRESS not in topics:
        yield "its progress records stay: a sink of this name would go on from them"
    for dag in home.dags:
        yield f'DAG "{dag.dag_id}" stays, paused, until its file is gone'
