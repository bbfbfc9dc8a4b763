"""The history of one sink: it is hit again and again, and after each kind of fault its output is judged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, assert_never

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.streaming import driver_share
from tests.faults.between import Between
from tests.faults.driver import Driver, SinkUnderTest
from tests.faults.feed import Feed
from tests.faults.outcome import Outcome
from tests.faults.outputs import output_of
from tests.faults.parts import Part
from tests.faults.phases import DRIVER, MOMENTS, Moment, Phase
from tests.faults.world import World

_ROWS_PER_ROUND = 900
_AFTER_START_SECONDS = 3.0
_AFTER_EPOCH_SECONDS = 1.0
_IN_EPOCH_SECONDS = 0.2
_START_SECONDS = 6.0
_DRAIN_SECONDS = 400.0
_WAIT_SECONDS = 400.0
_AIMED_MAX = 5
_IN_TASKS = {driver_share.SETTING: "0"}
_IN_DRIVER = {driver_share.SETTING: str(10**6)}
"""Who writes: writers in the executors, or the driver itself as it does for small epochs."""


@dataclass
class History:
    """A sink, and what happens to it. As a context manager it has an output, which is read all the time."""

    name: str
    world: World
    feed: Feed
    sink: SinkUnderTest
    driver: Driver | None = None

    def __post_init__(self) -> None:
        self.output = output_of(self.world, self.sink)
        self._aborted = 0
        self._random: random.Random = self.world.random(self.name)
        self.between = Between(self.world, self.sink, self.feed, self._random)

    def __enter__(self) -> Self:
        self.output.make()
        return self

    def __exit__(self, *_: object) -> None:
        self.output.close()

    def suffer(self, phase: Phase, before: Phase) -> Outcome:
        """Go through the faults of a phase, let the sink read everything, and judge it.

        :param before: the phase that comes next: the driver that is left running is fit for it.
        """
        started = time.monotonic()
        match phase.part:
            case Part.DRIVER | Part.JVM:
                kills = self._kill_drivers(phase)
            case Part.EXECUTOR | Part.WORKER:
                kills = self._kill_inside(phase)
            case Part.BACKEND | Part.SERVER:
                kills = self._kill_server(phase)
            case part:
                assert_never(part)
        self._drain_by(before)
        return self._examine(kills, started)

    def running(self, phase: Phase) -> Driver:
        """Return the driver that runs, or a new one that is fit for a phase."""
        if self.driver is None or self.sink.master != phase.master:
            self.stop()
            self.driver = self._start(phase, _IN_TASKS)
        return self.driver

    def rest(self) -> None:
        """Let the sink read some rows in peace."""
        self.feed.append(_ROWS_PER_ROUND)
        self._drain(self.running(DRIVER))

    def stop(self) -> None:
        """Stop the driver in order, if one runs."""
        if self.driver is not None:
            driver, self.driver = self.driver, None
            code = driver.stop()
            assert code == ExitCode.OK, f"exit code {code}\n{driver.log[-4000:]}"

    def refusal(self) -> Refusal:
        """Start the sink, expect that it is refused, and return its last words."""
        self.stop()
        return refusal_of(self.sink.start())

    def judged(self, started: float) -> Outcome:
        """Let the sink read everything, and judge it.

        :param started: when its faults began.
        """
        self._drain(self.running(DRIVER))
        return self._examine([], started)

    def wait_for_open_transaction(self, driver: Driver) -> None:
        """Return when rows are in the target that are not committed; let there be rows until then."""
        driver.wait_until(lambda: self._has_open_transaction(driver), _WAIT_SECONDS)

    def _kill_drivers(self, phase: Phase) -> list[str]:
        kills = self._until_rows_are_left(lambda: self._kill_aimed(phase))
        for _ in range(self._random_kills(phase)):
            self.feed.append(_ROWS_PER_ROUND)
            driver = self._start(phase, self._random.choice((_IN_TASKS, _IN_DRIVER)))
            kills.append(self._kill(phase, driver, self._at_a_random_moment(driver)))
        return kills

    def _random_kills(self, phase: Phase) -> int:
        """Return how many kills follow the aimed one, which counts, except for drivers: theirs are random."""
        return self.world.rounds if phase.part is Part.DRIVER else self.world.rounds - 1

    def _until_rows_are_left(self, strike: Callable[[], str]) -> list[str]:
        """Strike with a transaction open until rows were left behind: only that tests anything."""
        kills: list[str] = []
        before = self._unfinished()
        while len(kills) < _AIMED_MAX and self._unfinished() == before:
            kills.append(strike())
        return kills

    def _kill_aimed(self, phase: Phase) -> str:
        self.feed.append(_ROWS_PER_ROUND)
        driver = self.running(phase)
        self.wait_for_open_transaction(driver)
        return self._kill(phase, driver, "with a transaction open")

    def _start(self, phase: Phase, conf: Mapping[str, str]) -> Driver:
        self.sink.master = phase.master
        return self.sink.start(conf=conf)

    def _kill(self, phase: Phase, driver: Driver, when: str) -> str:
        status = demand_alive(driver)
        driver.kill(phase.part)
        if phase.part is Part.JVM:
            driver.wait()
        self.driver = None
        what = self.between.disturb(phase.checkpoints)
        return f"{phase.part.value} {when}, {status.state}, epoch {status.epoch}; checkpoint {what.value}"

    def _at_a_random_moment(self, driver: Driver) -> str:
        moment = self._random.choice(MOMENTS)
        driver.wait_until(lambda: driver.in_state(SinkState.STARTING))
        if moment is Moment.AT_START:
            deadline = time.monotonic() + self._random.uniform(0, _START_SECONDS)
            driver.wait_until(lambda: driver.in_state(SinkState.RUNNING) or time.monotonic() > deadline)
        elif moment is Moment.ANNOUNCED:
            driver.wait_until(lambda: driver.in_state(SinkState.RUNNING))
            time.sleep(self._random.uniform(0, _AFTER_START_SECONDS))
        else:
            driver.wait_epochs(self._random.choice((1, 2)), self.feed.ends)
            time.sleep(self._random.uniform(0, _AFTER_EPOCH_SECONDS))
        return moment.value

    def _kill_inside(self, phase: Phase) -> list[str]:
        """Kill parts of one driver that lives on and has its tasks repeated."""
        driver = self.running(phase)
        driver.wait_until(lambda: driver.in_state(SinkState.RUNNING))
        kills = self._until_rows_are_left(lambda: self._kill_one(phase, driver))
        return kills + [self._kill_one(phase, driver) for _ in range(self._random_kills(phase))]

    def _kill_one(self, phase: Phase, driver: Driver) -> str:
        self.feed.append(_ROWS_PER_ROUND // 2)
        driver.wait_until(
            lambda: self._has_open_transaction(driver) and self._hits(phase, driver), _WAIT_SECONDS
        )
        epoch = demand_alive(driver).epoch
        self._drain(driver)
        return f"{phase.part.value} after epoch {epoch}"

    def _hits(self, phase: Phase, driver: Driver) -> bool:
        time.sleep(self._random.uniform(0, _IN_EPOCH_SECONDS))
        return driver.kill(phase.part)

    def _kill_server(self, phase: Phase) -> list[str]:
        """Kill parts of the server behind the output, always with a transaction open."""
        return [self._kill_part_of_server(phase) for _ in range(self.world.rounds)]

    def _kill_part_of_server(self, phase: Phase) -> str:
        self.feed.append(_ROWS_PER_ROUND // 2)
        driver = self.running(phase)
        self.wait_for_open_transaction(driver)
        driver.wait_until(lambda: self._hits_server(phase, driver), _WAIT_SECONDS)
        launches = len(self.sink.launches)
        self._drain_by(phase)
        return f"{phase.part.value}, {len(self.sink.launches) - launches} launches behind it"

    def _hits_server(self, phase: Phase, driver: Driver) -> bool:
        if not self._has_open_transaction(driver):
            return False
        time.sleep(self._random.uniform(0, _IN_EPOCH_SECONDS))
        return self.output.kill(phase.part)

    def _drain_by(self, phase: Phase) -> None:
        """Let the sink read everything; a driver that could not reach a server is launched again, as ever."""
        while True:
            driver = self.running(phase)
            driver.wait_until(
                lambda now=driver: now.has_passed(self.feed.ends) or now.is_over,  # type: ignore[misc]
                _DRAIN_SECONDS,
            )
            if driver.has_passed(self.feed.ends):
                return
            code, self.driver = driver.wait(), None
            assert code == ExitCode.UNAVAILABLE, f"exit code {code}\n{driver.log[-4000:]}"

    def _drain(self, driver: Driver) -> None:
        driver.wait_until(lambda: driver.has_passed(self.feed.ends), _DRAIN_SECONDS)

    def _unfinished(self) -> int:
        return self.output.left_behind()

    def _has_open_transaction(self, driver: Driver) -> bool:
        if self.output.has_open_transaction():
            return True
        if driver.has_passed(self.feed.ends):
            self.feed.append(_ROWS_PER_ROUND)
        return False

    def _examine(self, kills: list[str], started: float) -> Outcome:
        found = self.output.examine(self.feed)
        aborted, self._aborted = found.aborted - self._aborted, found.aborted
        seconds = time.monotonic() - started
        return replace(found, kills=tuple(kills), seconds=seconds, aborted=aborted)


def demand_alive(driver: Driver) -> SinkStatus:
    """Return the status of a driver that must not have ended by itself."""
    status = driver.status
    assert status is not None
    assert not status.state.is_final, f"it ended by itself: {status.one_line()}\n{driver.log[-4000:]}"
    return status


@dataclass(frozen=True)
class Refusal:
    """How a launch was refused.

    :param seconds: how long that took.
    """

    primary: str
    hint: str
    seconds: float

    def __str__(self) -> str:
        return f"refused after {self.seconds:.0f} s: {self.primary}"


def refusal_of(driver: Driver) -> Refusal:
    """Wait for the end of a driver that must be refused."""
    started = time.monotonic()
    code = driver.wait()
    status = driver.status
    assert code == ExitCode.REFUSED, f"exit code {code}\n{driver.log[-4000:]}"
    assert status is not None
    assert status.error is not None
    return Refusal(status.error.primary, status.error.hint, time.monotonic() - started)
