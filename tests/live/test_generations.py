"""Reset and rewind of a sink that really ran: which rows come again, and what a start makes of it."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.new_generation import Output, Reset, plan_reset
from airflow_provider_sinks.core.rewind import AtOffsets, plan_rewind
from tests.live.generations import carry_out, everything, open_generations, ran, reset, written
from tests.live.stage import Sink, Stage

__all__ = ["ran"]


def test_after_a_rewind_exactly_the_named_offsets_come_again(stage: Stage, ran: Sink) -> None:
    done = carry_out(ran, lambda seen: plan_rewind(seen, AtOffsets({1: 12})))
    status = ran.run()

    again = {f"2/{number}" for number in (5, 7, 9)}
    assert done[-1] == "announce generation 2 at source offsets 0: 15, 1: 12"
    assert written(stage, ran) == Counter(everything()) + Counter(again)
    assert (status.generation, status.epoch, status.rows_total) == (2, 1, 3)


@pytest.mark.parametrize(("output", "times"), [(Output.KEEP, 2), (Output.EMPTY, 1), (Output.RECREATE, 1)])
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
