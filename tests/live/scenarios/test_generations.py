"""Reset and rewind of a sink that really ran: epochs, times, administrators, and drivers that live."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import pytest

from airflow_provider_sinks.connectors.generations import Generations
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import (
    ExitCode,
    FencedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation, plan_reset
from airflow_provider_sinks.core.lifecycle.rewind import AtEpoch, AtOffsets, AtTime, plan_rewind
from airflow_provider_sinks.core.lifecycle.steps import Announce, Plan
from airflow_provider_sinks.core.progress.record import DRIVER
from tests.faults.driver import OWNER
from tests.live.generations import (
    ENDLESS,
    TEXT,
    carry_out,
    everything,
    feed,
    open_generations,
    ran,
    reset,
    written,
)
from tests.live.stage import Sink, Stage

_QUIET_SECONDS = 20.0

__all__ = ["ran"]


def test_after_a_rewind_to_an_epoch_it_and_all_after_it_come_again(stage: Stage, ran: Sink) -> None:
    with open_generations(ran) as generations:
        known = generations.past_epochs()
    carry_out(ran, lambda seen: plan_rewind(seen, AtEpoch(2, known)))
    ran.run()

    again = {value for value in everything() if not value.startswith("0/")}
    assert written(stage, ran) == Counter(everything()) + Counter(again)


def test_after_a_rewind_to_a_time_what_came_after_it_comes_again(stage: Stage, ran: Sink) -> None:
    moment_ms = time.time_ns() // 1_000_000
    feed(stage, ran.source, ["3/0", "3/1", "3/2"])
    ran.run()
    with open_generations(ran) as generations:
        found = generations.offsets_at(moment_ms)
    carry_out(ran, lambda seen: plan_rewind(seen, AtTime("then", found)))
    ran.run()

    again = {"3/0", "3/1", "3/2"}
    assert found == {0: 15, 1: 15}
    assert written(stage, ran) == Counter({*everything(), *again}) + Counter(again)


def test_a_rewound_sink_loses_nothing_that_comes_meanwhile(stage: Stage, ran: Sink) -> None:
    carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({0: 14})))
    feed(stage, ran.source, ["new/0", "new/1"])
    ran.run()
    ran.run()

    assert written(stage, ran) == Counter({*everything(), "new/0", "new/1"}) + Counter(["2/8"])


@pytest.mark.parametrize(("output", "times"), [(Output.KEEP, 2), (Output.RECREATE, 1)])
def test_after_a_reset_everything_comes_again(stage: Stage, ran: Sink, output: Output, times: int) -> None:
    reset(ran, data=output)
    status = ran.run()

    assert written(stage, ran) == Counter(dict.fromkeys(everything(), times))
    assert (status.generation, status.rows_total) == (2, 30)


def test_a_reset_that_dies_before_its_end_lets_nobody_start(stage: Stage, ran: Sink) -> None:
    ask = Reset(data=Output.EMPTY)

    def die_in_the_middle(step: str) -> None:
        if step.startswith("empty"):
            raise KeyboardInterrupt

    with open_generations(ran) as generations, pytest.raises(KeyboardInterrupt):
        generations.carry_out(lambda seen: plan_reset(seen, ask), die_in_the_middle, ask)
    refused = ran.fail(ExitCode.REFUSED)
    reset(ran, data=Output.EMPTY)
    status = ran.run()

    assert "unfinished-reset" in str(refused.error)
    assert written(stage, ran) == Counter(everything())
    assert status.generation == 3


def test_a_topic_made_anew_is_as_an_administrator_had_set_it(stage: Stage, ran: Sink) -> None:
    stage.configure_topic(ran.out, "retention.ms", "123456789")

    done = reset(ran, data=Output.RECREATE)

    assert any("2 partitions, replication factor 1, retention.ms=123456789" in step for step in done)


def test_a_living_driver_is_noticed_and_loses_nothing(stage: Stage) -> None:
    source = stage.topic("alive", 2)
    sink = stage.sink("alive", source, **ENDLESS, **TEXT)
    feed(stage, source, ["0/0", "0/1"])
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 1, 1: 1}))
    fed = [2]

    def decide_while_it_writes(situation: Situation) -> Plan:
        if fed[0] == 2:
            feed(stage, source, ["1/0", "1/1"])
            fed[0] += 2
            driver.wait_until(lambda: driver.has_passed({0: 2, 1: 2}))
        return plan_reset(situation, Reset())

    with pytest.raises(RefusedError, match="is at work"):
        carry_out(sink, decide_while_it_writes)
    driver.end()

    assert written(stage, sink) == Counter(["0/0", "0/1", "1/0", "1/1"])


def test_a_driver_that_has_just_written_is_waited_for(stage: Stage, ran: Sink) -> None:
    written_at = max(datetime.fromisoformat(record.at) for _, record in stage.progress(ran))
    with Generations(ran.parsed, ran.connections, OWNER, None, quiet_seconds=_QUIET_SECONDS) as generations:
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)
        assert (datetime.now(UTC) - written_at).total_seconds() >= _QUIET_SECONDS
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)


def test_a_run_that_a_reset_fenced_writes_no_more(stage: Stage) -> None:
    source = stage.topic("fenced", 2)
    sink = stage.sink("fenced", source, **ENDLESS, **TEXT)
    feed(stage, source, ["0/0", "0/1"])
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 1, 1: 1}))

    reset(sink)
    feed(stage, source, ["1/0", "1/1"])
    code = driver.wait()

    assert code == ExitCode.FENCED
    assert written(stage, sink) == Counter(["0/0", "0/1"])


def test_one_of_two_resets_at_once_is_told_of_the_other(ran: Sink) -> None:
    other = open_generations(ran)

    def decide_after_the_other(situation: Situation) -> Plan:
        if situation.history.generation == 1 and not waited:
            waited.append(True)
            with other:
                other.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)
        return plan_reset(situation, Reset())

    waited: list[bool] = []
    with pytest.raises((RefusedError, FencedError)):
        carry_out(ran, decide_after_the_other)
    with open_generations(ran) as generations:
        history = generations.look().history

    assert history.generation == 2
    assert history.records[DRIVER].from_ == {0: 0, 1: 0}


def test_a_dry_run_says_what_a_run_does_and_changes_nothing(stage: Stage, ran: Sink) -> None:
    before = stage.end_offsets(ran)
    with open_generations(ran) as generations:
        plan = plan_rewind(generations.look(), AtOffsets({0: 3}))

    assert stage.end_offsets(ran) == before
    assert isinstance(plan.steps[-1], Announce)
    assert carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({0: 3}))) == list(map(str, plan.steps))


def test_a_broker_that_is_away_is_said_in_time(ran: Sink) -> None:
    away = KafkaOptions.from_connection_extra({"bootstrap.servers": "127.0.0.1:1"}, "kafka")
    started = time.monotonic()
    made: AbstractContextManager[Generations] = Generations(
        ran.parsed, ResolvedConnections({"kafka": away}), OWNER, None
    )
    with made as generations, pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1") as failed:
        generations.carry_out(lambda seen: plan_reset(seen, Reset()), lambda _: None)

    assert isinstance(failed.value, SinkError)
    assert time.monotonic() - started < 60
