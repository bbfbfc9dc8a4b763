"""The trigger by itself: what Airflow stores of it, when it rings, and that it holds up nobody."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from tests.airflow.fakes import SINK
from tests.support import until

if TYPE_CHECKING:
    from airflow.triggers.base import TriggerEvent

    from airflow_provider_sinks.lifecycle.dry_run import DryRun
    from airflow_provider_sinks.triggers.check_topics import CheckTopicsTrigger


def arguments(seconds: float, **changes: Any) -> dict[str, Any]:
    return {"sink": SINK, "deadline": time.time() + seconds, "poke_interval": 0.01, **changes}


def trigger(seconds: float, **changes: Any) -> CheckTopicsTrigger:
    from airflow_provider_sinks.triggers.check_topics import CheckTopicsTrigger

    return CheckTopicsTrigger(**arguments(seconds, **changes))


def seen(kind: VerdictKind) -> DryRun:
    from airflow_provider_sinks.lifecycle.dry_run import DryRun

    return DryRun(Verdict(kind, f"it would {kind}"))


class Eyes:
    """Looks that a test plays: each takes its time and then sees what is next; the last one for ever.

    :param seconds: how long each takes, or shorter, once ``over`` is set.
    """

    def __init__(self, *sights: DryRun | Exception, seconds: float = 0.0) -> None:
        self.sights = list(sights)
        self.seconds = seconds
        self.over = threading.Event()
        self.looks = self.now = self.most = 0
        self.threads: set[str] = set()

    def look(self) -> DryRun:
        self.now += 1
        self.most = max(self.most, self.now)
        self.threads.add(threading.current_thread().name)
        self.over.wait(self.seconds)
        self.looks, self.now = self.looks + 1, self.now - 1
        sight = self.sights[min(self.looks, len(self.sights)) - 1]
        if isinstance(sight, Exception):
            raise sight
        return sight

    def of(self, looking: CheckTopicsTrigger) -> CheckTopicsTrigger:
        looking._look_here = self.look  # type: ignore[method-assign]
        return looking


async def event_of(ringing: CheckTopicsTrigger) -> TriggerEvent:
    return await anext(aiter(ringing.run()))


def why(ringing: CheckTopicsTrigger) -> str:
    return str(asyncio.run(event_of(ringing)).payload["why"])


WAIT, START, REFUSE = (seen(kind) for kind in (VerdictKind.WAIT, VerdictKind.START, VerdictKind.REFUSE))


def test_what_airflow_stores_of_it_is_json_and_makes_the_same_trigger() -> None:
    from airflow.sdk._shared.module_loading import import_string

    path, stored = trigger(60, accept="adopt-1", longest_interval=30.0).serialize()
    again = import_string(path)(**json.loads(json.dumps(stored)))

    assert path == "airflow_provider_sinks.triggers.check_topics.CheckTopicsTrigger"
    assert again.serialize() == (path, stored)


def test_it_rings_at_the_deadline_when_nothing_can_be_seen(connections: Any) -> None:
    connections(kafka_test={"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}})
    ringing = trigger(0.3)

    event = asyncio.run(event_of(ringing)).payload

    assert event["deadline"] == ringing.deadline <= time.time()
    assert event["why"] == "the time is over"


@pytest.mark.parametrize(
    ("eyes", "says"),
    [
        (Eyes(START), "it would start"),
        (Eyes(WAIT, WAIT, REFUSE), "it would refuse"),
        (Eyes(ValueError("no such thing here")), "from the triggerer failed: ValueError: no such thing here"),
    ],
    ids=["start", "waits-then-refuses", "fails"],
)
def test_it_rings_when_a_worker_may_see_more(eyes: Eyes, says: str) -> None:
    assert says in why(eyes.of(trigger(60)))


def test_it_waits_before_it_looks_because_a_worker_has_just_looked() -> None:
    eyes = Eyes(START)

    assert why(eyes.of(trigger(0.2, poke_interval=60))) == "the time is over"
    assert eyes.looks == 0


def test_it_looks_once_at_a_time_in_threads_of_its_own() -> None:
    eyes = Eyes(*[WAIT] * 4, START, seconds=0.05)

    why(eyes.of(trigger(60, poke_interval=0)))

    assert (eyes.looks, eyes.most) == (5, 1)
    assert all(name.startswith("sinks-look") for name in eyes.threads)


def test_a_slow_look_does_not_hold_up_the_event_loop() -> None:
    eyes = Eyes(START, seconds=60)

    assert asyncio.run(_ended_when_the_loop_turns(eyes)) == 0


async def _ended_when_the_loop_turns(eyes: Eyes) -> int:
    """Return how many looks have ended when the loop goes on behind the begin of one."""
    ring = asyncio.create_task(event_of(eyes.of(trigger(600))))
    while not eyes.now and not eyes.looks:  # noqa: ASYNC110  a thread sets them
        await asyncio.sleep(0.005)
    ended = eyes.looks
    eyes.over.set()
    await ring
    return ended


def test_a_look_that_has_begun_ends_before_it_rings() -> None:
    eyes = Eyes(WAIT, seconds=4)

    says = why(eyes.of(trigger(3)))

    assert (says, eyes.looks, eyes.now) == ("the time is over", 1, 0)


def test_a_look_that_hangs_does_not_hold_up_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_sinks.triggers.check_topics.LAST_LOOK_SECONDS", 0.1)
    eyes = Eyes(START, seconds=60)

    says = why(eyes.of(trigger(3)))
    eyes.over.set()

    assert says == "the time is over, and the last look has not ended"


def test_cancelled_it_ends_at_once_and_drops_the_looks_that_have_not_begun() -> None:
    from airflow_provider_sinks.triggers import check_topics

    eyes = Eyes(START, seconds=60)

    asyncio.run(_begin_and_cancel(eyes))
    assert eyes.looks == 0  # it has waited for none
    eyes.over.set()
    check_topics._LOOKS.submit(lambda: None).result(60)  # behind all that have not been dropped
    until(lambda: not eyes.now, "the looks to end")

    assert eyes.looks == 8


async def _begin_and_cancel(eyes: Eyes) -> None:
    tasks = [asyncio.create_task(event_of(eyes.of(trigger(600)))) for _ in range(12)]
    while eyes.now < 8:  # noqa: ASYNC110  threads set it
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.cancelled() for task in tasks)


def test_it_backs_off_up_to_the_longest_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep, here = asyncio.sleep, threading.get_ident()

    async def note(seconds: float) -> None:
        if threading.get_ident() == here:  # not the loop of something that another test has left running
            slept.append(seconds)
            seconds = 0
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)

    why(Eyes(*[WAIT] * 5, START).of(trigger(600, poke_interval=2, longest_interval=10)))

    assert slept == [2, 4, 8, 10, 10, 10]
