"""What happens to each sink of the fault tests, chapter by chapter.

A story goes on with the same topics and the same progress, because a driver takes seconds to start: each
chapter is judged on everything that was written since the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from airflow_provider_sinks.core.spec.sink import Writers
from tests.faults import phases
from tests.faults.campaign import Story
from tests.faults.control import at_least_once
from tests.faults.history import History, Refusal, refusal_of
from tests.faults.outcome import WINDOW_SECONDS
from tests.faults.world import World
from tests.slow_sql import slow

PARTITIONS = 3
PHASES = (phases.DRIVER, phases.CHECKPOINT_LOST, phases.JVM, phases.EXECUTOR, phases.WORKER)
_WINDOW = f"window(at, '{WINDOW_SECONDS} seconds')"

ROW_WISE = f"""
    SELECT s.id, s.key, s.seq, u.version, space(2000) AS pad,
        {slow("IF(s.seq % 4 = 0, 4, 0)", "s.id")} AS pause
    FROM source s LEFT JOIN users u ON s.key = u.key"""  # noqa: S608  no user's text is in it
WINDOWS = f"""
    SELECT key, {_WINDOW}.start AS start, count(*) AS n, space(40000) AS pad
    FROM source GROUP BY key, {_WINDOW}"""  # noqa: S608  no user's text is in it


def row_wise(world: World, writers: Writers) -> History:
    """Return a sink that joins rows with a lookup."""
    feed = world.feed("rows", PARTITIONS)
    partitions = 1 if writers is Writers.SINGLE else PARTITIONS
    sink = world.sink("rows", feed, ROW_WISE, writers=writers, target={"partitions": partitions})
    return History(writers.value, world, feed, sink)


def windowed(world: World) -> History:
    """Return a sink that counts rows in windows."""
    feed = world.feed("windows", PARTITIONS)
    sink = world.sink("windows", feed, WINDOWS, target={"partitions": 1, "key": ["key", "start"]})
    return History("windowed counts", world, feed, sink)


def row_wise_story(world: World, wanted: Collection[str], writers: Writers) -> Iterator[tuple[str, object]]:
    """Everything is killed, then the source topic is made anew."""
    with row_wise(world, writers) as history:
        left = [phase for phase in PHASES if phase.name in wanted]
        while left:
            phase = left.pop(0)
            yield phase.name, history.suffer(phase, before=(left or [phase])[0])
        if "source" in wanted:
            history.rest()
            yield "source", _source_made_anew(history)


def windowed_story(world: World, wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """The driver is killed, then its state is lost."""
    with windowed(world) as history:
        yield "driver", history.suffer(phases.DRIVER, before=phases.DRIVER)
        if "older checkpoint" in wanted:
            history.stop()
            history.between.put_back_oldest()
            yield "older checkpoint", history.refusal()
        if "no checkpoint" in wanted:
            history.stop()
            history.between.lose_checkpoints()
            yield "no checkpoint", history.refusal()


def deletion_story(world: World, _wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """The data topic is deleted while rows are written."""
    with row_wise(world, Writers.PER_PARTITION) as history:
        history.rest()
        driver = history.running(phases.DRIVER)
        history.wait_for_open_transaction(driver)
        world.delete_topic(history.target)
        yield "data topic", refusal_of(driver)


def control_story(world: World, _wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """Spark's own sink under the same kills."""
    yield "driver", at_least_once(world)


STORIES: dict[str, Story] = {
    "per_partition": partial(row_wise_story, writers=Writers.PER_PARTITION),
    "single": partial(row_wise_story, writers=Writers.SINGLE),
    "windowed counts": windowed_story,
    "deletion": deletion_story,
    "at least once": control_story,
}


def _source_made_anew(history: History) -> Refusal:
    """Spark would go on at the old offsets of the new topic, and say nothing."""
    history.stop()
    history.world.delete_topic(history.feed.topic)
    history.world.create_topic(history.feed.topic, history.feed.partitions)
    return history.refusal()
