"""What happens to each sink of the fault tests, chapter by chapter.

A story goes on with the same topics and the same progress, because a driver takes seconds to start: each
chapter is judged on everything that was written since the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.postgres.spec import Mode
from airflow_provider_sinks.core.spec.sink import Writers
from tests.faults import phases
from tests.faults.buckets import BUCKET_ROWS
from tests.faults.campaign import Story
from tests.faults.control import at_least_once
from tests.faults.history import History, Refusal, refusal_of
from tests.faults.outcome import WINDOW_SECONDS
from tests.faults.phases import Phase
from tests.faults.world import World
from tests.slow_sql import slow

PARTITIONS = 3
PHASES = (phases.DRIVER, phases.CHECKPOINT_LOST, phases.JVM, phases.EXECUTOR, phases.WORKER)
TABLE_PHASES = (phases.DRIVER, phases.EXECUTOR, phases.WORKER, phases.BACKEND, phases.SERVER)
_WINDOW = f"window(at, '{WINDOW_SECONDS} seconds')"

_JOINED = "FROM source s LEFT JOIN users u ON s.key = u.key"


def _columns(pad: str = "2000") -> str:
    return f"""s.id, s.key, s.seq, u.version, space({pad}) AS pad,
        {slow("IF(s.seq % 4 = 0, 4, 0)", "s.id")} AS pause"""


def in_buckets(pad: str = "2000") -> str:
    """Return a query whose rows have the key of an upsert.

    :param pad: how much a row has beside, in bytes, as a SQL expression.
    """
    return f"SELECT s.seq DIV {BUCKET_ROWS} AS bucket, {_columns(pad)} {_JOINED}"


ROW_WISE = f"SELECT {_columns()} {_JOINED}"
IN_BUCKETS = in_buckets()
WINDOWS = f"""
    SELECT key, {_WINDOW}.start AS start, count(*) AS n, space(40000) AS pad
    FROM source GROUP BY key, {_WINDOW}"""  # noqa: S608  no user's text is in it


def row_wise(world: World, writers: Writers) -> History:
    """Return a sink that joins rows with a lookup."""
    feed = world.feed("rows", PARTITIONS)
    partitions = 1 if writers is Writers.SINGLE else PARTITIONS
    sink = world.sink("rows", feed, ROW_WISE, writers=writers, target={"partitions": partitions})
    return History(writers.value, world, feed, sink)


def row_wise_table(world: World, mode: Mode) -> History:
    """Return a sink that joins rows with a lookup, and writes them into a table."""
    feed = world.feed("rows", PARTITIONS)
    key = {"key": ["key", "bucket"]} if mode is Mode.UPSERT else {}
    sink = world.sink("rows", feed, IN_BUCKETS, target={"mode": mode, **key})
    return History(f"Postgres, {mode}", world, feed, sink)


def copy(world: World, writers: Writers) -> History:
    """Return a sink that copies records as they are: its tasks read them without Spark."""
    feed = world.feed("copy", PARTITIONS)
    return History(f"copies, {writers}", world, feed, world.copy("copy", feed, writers))


def windowed(world: World) -> History:
    """Return a sink that counts rows in windows."""
    feed = world.feed("windows", PARTITIONS)
    sink = world.sink("windows", feed, WINDOWS, target={"partitions": 1, "key": ["key", "start"]})
    return History("windowed counts", world, feed, sink)


def row_wise_story(world: World, wanted: Collection[str], writers: Writers) -> Iterator[tuple[str, object]]:
    """Everything is killed, then the source topic is made anew."""
    with row_wise(world, writers) as history:
        yield from told_phases(history, PHASES, wanted)
        if "source" in wanted:
            history.rest()
            yield "source", _source_made_anew(history)


def table_story(world: World, wanted: Collection[str], mode: Mode) -> Iterator[tuple[str, object]]:
    """Everything is killed, the server of the table too."""
    with world.with_own_postgres(mode) as own, row_wise_table(own, mode) as history:
        yield from told_phases(history, TABLE_PHASES, wanted)


def copy_story(world: World, wanted: Collection[str], writers: Writers) -> Iterator[tuple[str, object]]:
    """Everything is killed that reads and writes."""
    with copy(world, writers) as history:
        yield from told_phases(history, PHASES, wanted)


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
        world.delete_topic(kafka_sink(history.sink.parsed).target.kafka.topic)
        yield "data topic", refusal_of(driver)


def control_story(world: World, _wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """Spark's own sink under the same kills."""
    yield "driver", at_least_once(world)


STORIES: dict[str, Story] = {
    "per_partition": partial(row_wise_story, writers=Writers.PER_PARTITION),
    "single": partial(row_wise_story, writers=Writers.SINGLE),
    "Postgres, append": partial(table_story, mode=Mode.APPEND),
    "Postgres, upsert": partial(table_story, mode=Mode.UPSERT),
    "copies": partial(copy_story, writers=Writers.PER_PARTITION),
    "copies, one writer": partial(copy_story, writers=Writers.SINGLE),
    "windowed counts": windowed_story,
    "deletion": deletion_story,
    "at least once": control_story,
}


def told_phases(
    history: History, known: Sequence[Phase], wanted: Collection[str]
) -> Iterator[tuple[str, object]]:
    """Go through those of the phases that tests ask for."""
    left = [phase for phase in known if phase.name in wanted]
    while left:
        phase = left.pop(0)
        yield phase.name, history.suffer(phase, before=(left or [phase])[0])


def _source_made_anew(history: History) -> Refusal:
    """Spark would go on at the old offsets of the new topic, and say nothing."""
    history.stop()
    history.world.delete_topic(history.feed.topic)
    history.world.create_topic(history.feed.topic, history.feed.partitions)
    return history.refusal()
