"""A table of files, judged with the progress that it keeps itself.

It has no order, so none is judged. What was written and is not published lies in stages beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq

from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.stage import Stage
from airflow_provider_sinks.core.decision.facts import Role
from tests.faults import buckets, checker
from tests.faults.driver import SinkUnderTest
from tests.faults.feed import Feed
from tests.faults.lake_tables import LakeReader, Snapshot
from tests.faults.outcome import Outcome
from tests.faults.parts import Part
from tests.faults.topics import Record
from tests.faults.watch import Look, Watch

_LOST = "Lost task"
"""What Spark logs of each attempt that it gives up with its process."""


class LakeOutput:
    """See :class:`.outputs.Output`."""

    def __init__(self, sink: SinkUnderTest, table: LakeReader, mode: Mode) -> None:
        self._sink = sink
        self._table = table
        self._replaces = mode is Mode.UPSERT
        self._watch = LakeWatch(table, replaces=self._replaces)
        self._left: set[str] = set()

    def make(self) -> None:
        self._watch.start()  # the sink makes it

    def close(self) -> None:
        self._watch.stop()
        self._table.close()

    def has_open_transaction(self) -> bool:
        return any(path.stem not in self._left for path in self._table.stages())

    def left_behind(self) -> int:
        """Return how many stages nobody has published, and how many tasks were lost.

        It is asked for when the driver is dead or has nothing to do: whatever lies there then was left.
        """
        if staged := self._table.stages():
            ids = {row["id"] for row in self._table.read().rows}
            self._left |= {path.stem for path in staged if not _is_published(path, ids)}
        return len(self._left) + sum(launch.log.count(_LOST) for launch in self._sink.launches)

    def kill(self, part: Part) -> bool:
        raise AssertionError(f"it has no server whose {part.value} could be killed")

    def examine(self, feed: Feed) -> Outcome:
        snapshot = self._table.read()
        last = look_of(snapshot, replaces=self._replaces)
        verdict = checker.judge(list(_records(snapshot)), feed.rows)
        if self._replaces:
            verdict = buckets.of_the_newest(verdict, {row["id"] for row in snapshot.rows}, feed)
        return Outcome(
            verdict=verdict,
            aborted=self.left_behind(),
            aborted_what="attempts cut off",
            epochs=max(record.epoch for _, record in last.progress),
            torn=(*self._watch.torn, *last.torn()),
            regressions=tuple(checker.regressions(self._watch.history)),
            vanished=len(self._watch.fallen),
            versions=len({row["version"] for row in snapshot.rows}),
        )


class LakeWatch(Watch):
    """See :class:`.watch.Watch`. A table that cannot be read is a part of an epoch too."""

    def __init__(self, table: LakeReader, *, replaces: bool) -> None:
        super().__init__()
        self._table = table
        self._replaces = replaces

    def look(self) -> Look:
        return look_of(self._table.read(), replaces=self._replaces)

    def look_around(self) -> None:
        try:
            super().look_around()
        except Exception as error:  # noqa: BLE001  whatever it is, a reader must never see it
            self.torn.append(f"cannot be read: {type(error).__name__}: {error}")


def look_of(snapshot: Snapshot, *, replaces: bool) -> Look:
    """Return what a reader sees in a snapshot.

    Rows that were replaced count by those that stand for them, so a part of an epoch is seen in an upsert
    too.
    """
    rows, state = snapshot.rows, snapshot.state
    progress = sorted(state.records.items()) if state is not None else []
    if not replaces:
        return Look({"rows": len(rows)}, len(rows) - len({row["id"] for row in rows}), len(rows), progress)
    newest = {f"{row['key']}/{row['bucket']}": int(row["seq"]) for row in rows}
    return Look(newest, len(rows) - len(newest), sum(map(buckets.stands_for, newest.values())), progress)


def _is_published(path: Path, ids: set[str]) -> bool:
    """Whether the table has the rows of a stage: then its driver died before it removed the stage."""
    with suppress(FileNotFoundError, ValueError):
        stage = Stage.decode(path.stem, path.read_bytes())
        files = [file for file in stage.of(Role.DATA) if not file.equality_ids]
        if stage.is_whole and files:
            found = pq.read_table(urlsplit(files[0].path).path, columns=["id"])
            return found.column("id")[0].as_py() in ids
    return False


def _records(snapshot: Snapshot) -> Iterator[Record]:
    for number, row in enumerate(sorted(snapshot.rows, key=lambda row: int(row["seq"]))):
        yield Record(0, number, row["key"].encode(), json.dumps(row, default=str).encode())
