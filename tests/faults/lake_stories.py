"""What happens to the sinks of the fault tests that write Iceberg and Delta tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from airflow_provider_sinks.connectors.table_format.spec import Mode
from tests.faults import phases
from tests.faults.campaign import Story
from tests.faults.history import History
from tests.faults.stories import IN_BUCKETS, PARTITIONS, in_buckets, told_phases
from tests.faults.world import World

PHASES = (phases.DRIVER, phases.EXECUTOR, phases.WORKER)
FORMATS = {"Iceberg": "iceberg", "Delta": "delta"}
_WIDE_BYTES = 240_000
"""As a row group is 32 MB, a writer of such rows has begun a file long before its last row."""
WIDE_IN_TURNS = in_buckets(f"IF(s.seq DIV 300 % 2 = 0, {_WIDE_BYTES}, 2000)")
"""The driver itself writes no epoch of wide rows, so some are narrow."""


def lake(world: World, name: str, mode: Mode) -> History:
    """Return a sink that joins rows with a lookup, and writes them into a table of files.

    :param name: of the format, as reports call it.
    """
    feed = world.feed("rows", PARTITIONS)
    key = {"key": ["key", "bucket"]} if mode is Mode.UPSERT else {}
    query = IN_BUCKETS if mode is Mode.UPSERT else WIDE_IN_TURNS
    sink = world.sink("rows", feed, query, target={FORMATS[name]: {"mode": mode.value, **key}})
    return History(f"{name}, {mode}", world, feed, sink)


def lake_story(world: World, wanted: Collection[str], name: str, mode: Mode) -> Iterator[tuple[str, object]]:
    """The driver is killed, then executors, then Python workers."""
    with lake(world, name, mode) as history:
        yield from told_phases(history, PHASES, wanted)


STORIES: dict[str, Story] = {
    f"{name}, {mode}": partial(lake_story, name=name, mode=mode) for mode in Mode for name in FORMATS
}
