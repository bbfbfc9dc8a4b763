"""Reset and rewind of a sink that really ran: which rows come again, and what a start makes of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest

from airflow_provider_sinks.clients.generations import Generations
from airflow_provider_sinks.core.errors import (
    ExitCode,
    FencedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.new_generation import Output, Reset, Situation, plan_reset
from airflow_provider_sinks.core.options import KafkaOptions, ResolvedConnections
from airflow_provider_sinks.core.progress import DRIVER
from airflow_provider_sinks.core.rewind import AtEpoch, AtOffsets, AtTime, plan_rewind
from airflow_provider_sinks.core.steps import Announce, Plan
from tests.faults.driver import OWNER
from tests.live.stage import Sink, Stage

_TEXT = {"from_": {"format": "text"}}
_ENDLESS = {"trigger": {"every": "100ms"}}


def _generations(sink: Sink) -> Generations:
    return Generations(sink.parsed, sink.connections, OWNER, None, quiet_seconds=0)


def _carry_out(sink: Sink, decide: Callable[[Situation], Plan], ask: Reset | None = None) -> list[str]:
    done: list[str] = []
    with _generations(sink) as generations:
        generations.carry_out(decide, done.append, ask or Reset())
    return done


def _reset(sink: Sink, **outputs: Output) -> list[str]:
    ask = Reset(**outputs)
    return _carry_out(sink, lambda situation: plan_reset(situation, ask), ask)


def _feed(stage: Stage, source: str, values: Sequence[str]) -> None:
    stage.produce(source, [(number % 2, None, value) for number, value in enumerate(values)])


def _written(stage: Stage, sink: Sink) -> Counter[str]:
    return Counter(record.value.decode() for record in stage.read(sink.out) if record.value)


@pytest.fixture
def ran(stage: Stage) -> Sink:
    """A sink with three epochs: ten rows in each, five from each source partition."""
    source = stage.topic("generations", 2)
    sink = stage.sink("generations", source, dead_letter={"topic": f"{source}-dlq"}, **_TEXT)
    for epoch in range(3):
        _feed(stage, source, [f"{epoch}/{number}" for number in range(10)])
        sink.run()
    return sink


def _all() -> set[str]:
    return {f"{epoch}/{number}" for epoch in range(3) for number in range(10)}


def test_after_a_rewind_exactly_the_named_offsets_come_again(stage: Stage, ran: Sink) -> None:
    done = _carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({1: 12})))
    status = ran.run()

    again = {f"2/{number}" for number in (5, 7, 9)}
    assert done[-1] == "announce generation 2 at source offsets 0: 15, 1: 12"
    assert _written(stage, ran) == Counter(_all()) + Counter(again)
    assert (status.generation, status.epoch, status.rows_total) == (2, 1, 3)


def test_after_a_rewind_to_an_epoch_it_and_all_after_it_come_again(stage: Stage, ran: Sink) -> None:
    with _generations(ran) as generations:
        known = generations.past_epochs()
    _carry_out(ran, lambda seen: plan_rewind(seen, AtEpoch(2, known)))
    ran.run()

    again = {value for value in _all() if not value.startswith("0/")}
    assert _written(stage, ran) == Counter(_all()) + Counter(again)


def test_after_a_rewind_to_a_time_what_came_after_it_comes_again(stage: Stage, ran: Sink) -> None:
    moment_ms = time.time_ns() // 1_000_000
    _feed(stage, ran.source, ["3/0", "3/1", "3/2"])
    ran.run()
    with _generations(ran) as generations:
        found = generations.offsets_at(moment_ms)
    _carry_out(ran, lambda seen: plan_rewind(seen, AtTime("then", found)))
    ran.run()

    again = {"3/0", "3/1", "3/2"}
    assert found == {0: 15, 1: 15}
    assert _written(stage, ran) == Counter({*_all(), *again}) + Counter(again)


def test_a_rewound_sink_loses_nothing_that_comes_meanwhile(stage: Stage, ran: Sink) -> None:
    _carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({0: 14})))
    _feed(stage, ran.source, ["new/0", "new/1"])
    ran.run()
    ran.run()

    assert _written(stage, ran) == Counter({*_all(), "new/0", "new/1"}) + Counter(["2/8"])


@pytest.mark.parametrize(("output", "times"), [(Output.KEEP, 2), (Output.EMPTY, 1), (Output.RECREATE, 1)])
def test_after_a_reset_everything_comes_again(stage: Stage, ran: Sink, output: Output, times: int) -> None:
    _reset(ran, data=output)
    status = ran.run()

    assert _written(stage, ran) == Counter(dict.fromkeys(_all(), times))
    assert (status.generation, status.rows_total) == (2, 30)


def test_a_topic_made_anew_is_as_an_administrator_had_set_it(stage: Stage, ran: Sink) -> None:
    stage.configure_topic(ran.out, "retention.ms", "123456789")

    done = _reset(ran, data=Output.RECREATE)

    assert any("2 partitions, replication factor 1, retention.ms=123456789" in step for step in done)


def test_a_reset_that_dies_before_its_end_lets_nobody_start(stage: Stage, ran: Sink) -> None:
    ask = Reset(data=Output.EMPTY)

    def die_in_the_middle(step: str) -> None:
        if step.startswith("empty"):
            raise KeyboardInterrupt

    with _generations(ran) as generations, pytest.raises(KeyboardInterrupt):
        generations.carry_out(lambda seen: plan_reset(seen, ask), die_in_the_middle, ask)
    refused = ran.fail(ExitCode.REFUSED)
    _reset(ran, data=Output.EMPTY)
    status = ran.run()

    assert "unfinished-reset" in str(refused.error)
    assert _written(stage, ran) == Counter(_all())
    assert status.generation == 3


def test_a_living_driver_is_noticed_and_loses_nothing(stage: Stage) -> None:
    source = stage.topic("alive", 2)
    sink = stage.sink("alive", source, **_ENDLESS, **_TEXT)
    _feed(stage, source, ["0/0", "0/1"])
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 1, 1: 1}))
    fed = [2]

    def decide_while_it_writes(situation: Situation) -> Plan:
        if fed[0] == 2:
            _feed(stage, source, ["1/0", "1/1"])
            fed[0] += 2
            driver.wait_until(lambda: driver.has_passed({0: 2, 1: 2}))
        return plan_reset(situation, Reset())

    with pytest.raises(RefusedError, match="is at work"):
        _carry_out(sink, decide_while_it_writes)
    driver.end()

    assert _written(stage, sink) == Counter(["0/0", "0/1", "1/0", "1/1"])


def test_a_driver_that_has_just_written_is_waited_for(ran: Sink) -> None:
    started = time.monotonic()
    with Generations(ran.parsed, ran.connections, OWNER, None, quiet_seconds=4) as generations:
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)
        waited = time.monotonic() - started
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)

    assert 1 < waited < 8
    assert time.monotonic() - started - waited < 3


def test_a_run_that_a_reset_fenced_writes_no_more(stage: Stage) -> None:
    source = stage.topic("fenced", 2)
    sink = stage.sink("fenced", source, **_ENDLESS, **_TEXT)
    _feed(stage, source, ["0/0", "0/1"])
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 1, 1: 1}))

    _reset(sink)
    _feed(stage, source, ["1/0", "1/1"])
    code = driver.wait()

    assert code == ExitCode.FENCED
    assert _written(stage, sink) == Counter(["0/0", "0/1"])


def test_one_of_two_resets_at_once_is_told_of_the_other(ran: Sink) -> None:
    other = _generations(ran)

    def decide_after_the_other(situation: Situation) -> Plan:
        if situation.history.generation == 1 and not waited:
            waited.append(True)
            with other:
                other.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)
        return plan_reset(situation, Reset())

    waited: list[bool] = []
    with pytest.raises((RefusedError, FencedError)):
        _carry_out(ran, decide_after_the_other)
    with _generations(ran) as generations:
        history = generations.look().history

    assert history.generation == 2
    assert history.records[DRIVER].from_ == {0: 0, 1: 0}


def test_a_dry_run_says_what_a_run_does_and_changes_nothing(stage: Stage, ran: Sink) -> None:
    before = stage.end_offsets(ran)
    with _generations(ran) as generations:
        plan = plan_rewind(generations.look(), AtOffsets({0: 3}))

    assert stage.end_offsets(ran) == before
    assert isinstance(plan.steps[-1], Announce)
    assert _carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({0: 3}))) == list(map(str, plan.steps))


def test_a_broker_that_is_away_is_said_in_time(ran: Sink) -> None:
    away = KafkaOptions.from_connection_extra({"bootstrap.servers": "127.0.0.1:1"}, "kafka")
    started = time.monotonic()
    made: AbstractContextManager[Generations] = Generations(
        ran.parsed, ResolvedConnections({"kafka": away}), OWNER, None
    )
    with made as generations, pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1") as failed:
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)

    assert isinstance(failed.value, SinkError)
    assert time.monotonic() - started < 15
