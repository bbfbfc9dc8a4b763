"""What tests of reset and rewind share: a sink that ran, and hands that act on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from airflow_provider_sinks.connectors.generations import Generations
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation, plan_reset
from airflow_provider_sinks.core.lifecycle.steps import Plan
from tests.faults.driver import OWNER
from tests.live.stage import Sink, Stage

TEXT = {"from_": {"format": "text"}}
ENDLESS = {"trigger": {"every": "100ms"}}


def open_generations(sink: Sink) -> Generations:
    """Return the sink's records and topics, in hands that wait for nobody."""
    return Generations(sink.parsed, sink.connections, OWNER, None, quiet_seconds=0)


def carry_out(sink: Sink, decide: Callable[[Situation], Plan], ask: Reset | None = None) -> list[str]:
    """Carry a decision out, and return what was done."""
    done: list[str] = []
    with open_generations(sink) as generations:
        generations.carry_out(decide, done.append, ask or Reset())
    return done


def reset(sink: Sink, **outputs: Output) -> list[str]:
    """Reset the sink, and return what was done."""
    ask = Reset(**outputs)
    return carry_out(sink, lambda situation: plan_reset(situation, ask), ask)


def feed(stage: Stage, source: str, values: Sequence[str]) -> None:
    """Append rows to the source, in turn to its two partitions."""
    stage.produce(source, [(number % 2, None, value) for number, value in enumerate(values)])


def written(stage: Stage, sink: Sink) -> Counter[str]:
    """Return the committed rows of the data topic."""
    return Counter(record.value.decode() for record in stage.read(sink.out) if record.value)


@pytest.fixture
def ran(stage: Stage) -> Sink:
    """A sink with three epochs: ten rows in each, five from each source partition."""
    source = stage.topic("generations", 2)
    sink = stage.sink("generations", source, dead_letter={"topic": f"{source}-dlq"}, **TEXT)
    for epoch in range(3):
        feed(stage, source, [f"{epoch}/{number}" for number in range(10)])
        sink.run()
    return sink


def everything() -> set[str]:
    """Return the rows of three epochs."""
    return {f"{epoch}/{number}" for epoch in range(3) for number in range(10)}
