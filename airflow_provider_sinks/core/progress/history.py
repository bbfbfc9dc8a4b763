"""What all progress records of one sink say together: who wrote last, how far it is, what contradicts itself.

Reading a progress topic is a fold over its messages in the order of their offsets:

* the newest record of each writer counts; a deletion mark (a null value) takes a writer's record away, and is
  a finding: we never write one,
* keys of other sinks are not ours to judge,
* a value under our own key that cannot be read is a finding, never a crash and never skipped in silence,
* a writer's record that lies behind an older one of the same writer and generation is a finding,
* a reset on purpose (the driver announces a higher generation) settles the findings before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.log_place import LogPlace
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    Format,
    ProgressFormatError,
    ProgressKey,
    ProgressRecord,
    WriterId,
    partition_writer,
)

EARLIEST = -2
"""Spark's number for the first offset that is still there."""


class Finding(enum.Enum):
    """What can be wrong with the records of a sink."""

    NEWER_FORMAT = "newer format"
    GARBAGE = "garbage"
    BACKWARDS = "backwards"
    DELETED = "deleted"


@dataclass(frozen=True)
class Flaw:
    """One thing wrong in the progress topic, and where it stands.

    :param offset: the offset of the message in the progress topic.
    """

    finding: Finding
    writer: WriterId
    offset: int
    what: str


@dataclass(frozen=True)
class History:
    """The progress of one sink.

    :param records: the newest record of each writer, of any generation.
    :param flaws: what could not be taken, in the order of the topic.
    """

    records: dict[WriterId, ProgressRecord] = field(default_factory=dict)
    flaws: tuple[Flaw, ...] = ()

    @property
    def generation(self) -> int:
        """The newest generation; 0 if there is no record."""
        return max((record.generation for record in self.records.values()), default=0)

    @property
    def current(self) -> dict[WriterId, ProgressRecord]:
        """The newest records of the newest generation; only these say how far the sink is."""
        newest = self.generation
        return {writer: record for writer, record in self.records.items() if record.generation == newest}

    @property
    def epoch(self) -> int:
        """The newest epoch of the newest generation; 0 if none began."""
        return max((record.epoch for record in self.current.values()), default=0)

    @property
    def newest(self) -> ProgressRecord | None:
        """A record of the newest epoch: a writer's if one wrote in it, because it knows the epoch's range."""
        order = sorted(self.current.items(), key=lambda item: (item[1].epoch, item[0] != DRIVER))
        return order[-1][1] if order else None

    @property
    def rows_total(self) -> int:
        """Rows that all writers committed in the newest generation."""
        return sum(rows for rows, _ in self.totals().values())

    @property
    def dead_total(self) -> int:
        """Dead letters that all writers committed in the newest generation."""
        return sum(dead for _, dead in self.totals().values())

    @property
    def rows_ever(self) -> int:
        """Rows committed to the data topic, those that earlier generations left in it included."""
        return self.rows_total + max((record.rows_before for record in self.current.values()), default=0)

    @property
    def dead_ever(self) -> int:
        """Dead letters committed to the dead-letter topic, those of earlier generations included."""
        return self.dead_total + max((record.dead_before for record in self.current.values()), default=0)

    @property
    def writers_ever(self) -> tuple[WriterId, ...]:
        """Every writer id that ever wrote or was about to: all of them are fenced at a start."""
        named = {writer for record in self.records.values() for writer in record.writers}
        return tuple(sorted(named | set(self.records)))

    @property
    def driver(self) -> ProgressRecord | None:
        """The driver's newest record."""
        return self.records.get(DRIVER)

    @property
    def in_force(self) -> ProgressRecord | None:
        """The record that names the run, owner and topics in force: the driver's, as long as it is there."""
        return self.current.get(DRIVER) or self.newest

    @property
    def checkpoint(self) -> str:
        """The checkpoint folder in force, or empty."""
        return self.in_force.checkpoint if self.in_force else ""

    @property
    def writer_mode(self) -> str:
        """How the sink was written by the run in force; empty where nobody says."""
        return self.in_force.writer_mode if self.in_force else ""

    @property
    def identities(self) -> Identities | None:
        """The topics in force."""
        return self.in_force.identities if self.in_force else None

    def batch(self, checkpoint: str) -> int:
        """Return the newest recorded batch of a checkpoint, or -1."""
        return max((r.batch for r in self.current.values() if r.checkpoint == checkpoint), default=-1)

    def totals(self) -> dict[WriterId, tuple[int, int]]:
        """Return rows and dead letters of each writer in the newest generation.

        Other records carry them too, because a reader of a long topic may not have gone back to the last
        record of a writer that has been quiet for long. Counts only grow, so the larger one is newer.
        """
        found: dict[WriterId, tuple[int, int]] = {}
        for writer, record in self.current.items():
            own = (record.rows_total, record.dead_total)
            for name, (rows, dead) in {**record.totals, writer: own}.items():
                old_rows, old_dead = found.get(name, (0, 0))
                found[name] = (max(old_rows, rows), max(old_dead, dead))
        return found

    def first_hand(self) -> History:
        """Return it with what each record says of its own writer alone.

        What the others say of one whose newest records are lost was true before.
        """
        return replace(self, records={name: replace(r, totals={}) for name, r in self.records.items()})

    def known_positions(self) -> dict[int, int]:
        """Return up to where each source partition is proven committed, by the newest generation.

        The largest proof of any record counts, which is ``max(to[p] of p's own newest record, from[p] of the
        newest epoch)``: ``from`` never falls within a generation.
        """
        positions: dict[int, int] = {}
        for writer, record in self.current.items():
            for partition in record.from_.keys() | record.to.keys():
                proven = record.committed(writer, partition)
                if proven is not None:
                    positions[partition] = max(positions.get(partition, proven), proven)
        return positions

    def own_positions(self) -> dict[int, int] | None:
        """Return up to where each source partition is committed by what is left, or nothing if none can say.

        As :meth:`known_positions`, but of a writer whose newest records are lost only its own record counts:
        what the others prove of it was true before.
        """
        positions = self.known_positions()
        for writer in lost_writers(self):
            record = self.current.get(writer)
            has_others = writer == SINGLE_WRITER and not self.current.keys() <= {DRIVER, SINGLE_WRITER}
            if record is None or writer == DRIVER or has_others:
                return None
            own = {p: at for p, at in record.to.items() if writer in (SINGLE_WRITER, partition_writer(p))}
            positions.update(own)
        return positions if self.current else None

    def epoch_ends(self) -> dict[int, int]:
        """Return up to where each source partition is committed if the newest epoch is whole."""
        ends = self.known_positions()
        for record in self.current.values():
            if record.epoch == self.epoch:
                ends = {p: max(ends.get(p, at), at) for p, at in {**ends, **record.to}.items()}
        return ends

    def log_places(self) -> dict[int, LogPlace]:
        """Return up to where each source partition was read, as far as its leader epoch is known.

        A run announces what it has found, after those before it: of its own epochs the newest counts, and
        none of another run.
        """
        newest, announced = self.newest, self.in_force
        if newest is None or announced is None:
            return {}
        counts = newest if newest.run == announced.run else announced
        return {p: LogPlace(counts.to[p], e) for p, e in counts.leader_epochs.items() if p in counts.to}

    def resume_positions(self, source_partitions: int, newest_is_whole: bool = False) -> dict[int, int]:
        """Return where each source partition goes on; one that no record knows was added later.

        :param newest_is_whole: Spark's commit log proves that the newest epoch ended. Records alone cannot:
            a writer without a row in it left no trace.
        :returns: an offset per partition, :data:`EARLIEST` for those added later.
        """
        known = self.known_positions()
        if newest_is_whole and self.newest is not None:
            known = {p: max(known.get(p, offset), offset) for p, offset in self.newest.to.items()}
        return {partition: known.get(partition, EARLIEST) for partition in range(source_partitions)}

    def __bool__(self) -> bool:
        """There is at least one record."""
        return bool(self.records)


NO_HISTORY = History()
"""No record of the sink: it is new, or its progress was lost. Nothing in the topic tells which."""


def lost_writers(history: History) -> tuple[WriterId, ...]:
    """Return the writers whose newest record must be there, and is gone or older than another one says.

    The driver announces a generation before any writer has a row, and its record names what each writer had
    committed by then; so does every record of one among several writers, as of the begin of its epoch.
    Compaction keeps the newest record of each, so one that is missing was deleted, and one that is older was
    forgotten by its target. Turned round: where the driver's record and those that any names are there,
    whatever else was removed says nothing that they do not. What is wrong with a record is told by its flaw.
    """
    flawed = {flaw.writer for flaw in history.flaws}
    if DRIVER not in history.current:
        return () if DRIVER in flawed else (DRIVER,)
    committed = {writer: (record.rows_total, record.dead_total) for writer, record in history.current.items()}
    return tuple(
        writer
        for writer, named in sorted(history.totals().items())
        if writer not in flawed and is_behind(committed.get(writer, (0, 0)), named)
    )


def is_behind(totals: tuple[int, int], known: tuple[int, int]) -> bool:
    """Whether rows or dead letters of a writer are fewer than is known: both only grow in a generation."""
    return totals[0] < known[0] or totals[1] < known[1]


def fold(
    messages: Iterable[tuple[int, bytes | None, bytes | None]], sink: str, history: History = NO_HISTORY
) -> History:
    """Fold the messages of a progress topic into the history of one sink.

    :param messages: offset, key and value, in the order of the topic.
    :param history: what the messages before them said.
    """
    for offset, key, value in messages:
        decoded = ProgressKey.decode(key)
        if decoded is not None and decoded.sink == sink:
            history = _take(history, offset, decoded.writer, value)
    return history


def _take(history: History, offset: int, writer: WriterId, value: bytes | None) -> History:
    if value is None:
        kept = {name: record for name, record in history.records.items() if name != writer}
        flaw = Flaw(Finding.DELETED, writer, offset, "its record was deleted by hand")
        return replace(history, records=kept, flaws=(*history.flaws, flaw))
    try:
        record = ProgressRecord.decode(value)
    except ProgressFormatError as error:
        finding = Finding.NEWER_FORMAT if error.why is Format.NEWER else Finding.GARBAGE
        return replace(history, flaws=(*history.flaws, Flaw(finding, writer, offset, str(error))))
    return _add(history, offset, writer, record)


def _add(history: History, offset: int, writer: WriterId, record: ProgressRecord) -> History:
    older = history.records.get(writer)
    backwards = "; ".join(_regressions(writer, older, record)) if older else ""
    if backwards:
        return replace(history, flaws=(*history.flaws, Flaw(Finding.BACKWARDS, writer, offset, backwards)))
    is_reset = writer == DRIVER and record.generation > history.generation
    flaws = () if is_reset else history.flaws
    return replace(history, records={**history.records, writer: record}, flaws=flaws)


def _regressions(writer: WriterId, older: ProgressRecord, newer: ProgressRecord) -> Iterator[str]:
    if newer.generation < older.generation:
        yield f"generation {newer.generation} after {older.generation}"
    if newer.generation != older.generation:
        return
    if newer.epoch < older.epoch:
        yield f"epoch {newer.epoch} after {older.epoch}"
    if newer.rows_total < older.rows_total:
        yield f"{newer.rows_total} rows in all after {older.rows_total}"
    for partition, before in sorted(older.to.items()):
        after = newer.to.get(partition, before)
        if writer in (SINGLE_WRITER, partition_writer(partition)) and after < before:
            yield f"offset {after} of source partition {partition} after {before}"
