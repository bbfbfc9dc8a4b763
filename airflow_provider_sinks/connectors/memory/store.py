"""The target itself: what a database server is to others. One lock makes each change of it atomic."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_sinks.connectors.epoch_writer import LostStageError, Token
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord, WriterId

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Slot:
    """Whose turn it is to write the next record of one writer.

    :param run: the run that may.
    :param holder: the writer object that may; empty until one opened.
    """

    run: str
    holder: str = ""
    record: ProgressRecord | None = None


@dataclass(frozen=True)
class Stage:
    """Rows that a token stands for: written, and not visible."""

    run: str
    rows: Sequence[Row]
    dead: Sequence[Row]


@dataclass
class Output:
    """Rows that everybody sees, and which output it is."""

    rows: list[Row] = field(default_factory=list)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class MemoryStore:
    """Outputs by name, and the progress of each sink. Safe for threads."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self.outputs: dict[str, Output] = {}
        self._slots: dict[str, dict[WriterId, Slot]] = {}
        self._stages: dict[str, Stage] = {}
        self._lock = threading.RLock()

    def ensure(self, name: str) -> None:
        """Make an output unless it is there."""
        with self._lock:
            self.outputs.setdefault(name, Output())

    def reset(self, name: str, output_id: str, *, empties: bool) -> None:
        """Empty an output, or forget it; one that is gone is fine.

        :raises RefusedError: it is another one by now.
        """
        with self._lock:
            output = self.outputs.get(name)
            if output is None:
                return
            if output.id != output_id:
                raise RefusedError(f'output "{name}" is not the one any more that was looked at')
            if empties:
                output.rows.clear()
            else:
                del self.outputs[name]

    def history(self, sink: str) -> History:
        """Return the newest record of each writer."""
        with self._lock:
            slots = self._slots.get(sink, {})
            return History({writer: slot.record for writer, slot in slots.items() if slot.record})

    def run_in_force(self, sink: str, writer: WriterId) -> str:
        """Return the run that may write the writer's next record, or nothing."""
        with self._lock:
            slot = self._slots.get(sink, {}).get(writer)
            return slot.run if slot else ""

    def take_run(self, sink: str, run: str, writers: Iterable[WriterId]) -> None:
        """Give every writer of the sink to a run: whoever held one can not commit any more."""
        with self._lock:
            slots = self._slots.setdefault(sink, {})
            for writer in {*slots, *writers}:
                record = slots[writer].record if writer in slots else None
                slots[writer] = Slot(run, record=record)

    def take_writer(self, sink: str, run: str, writer: WriterId) -> Slot:
        """Give one writer to a new holder of the same run, and return what it now holds.

        :raises FencedError: the writer belongs to another run.
        """
        with self._lock:
            slot = replace(self._slot_of(sink, run, writer), holder=uuid.uuid4().hex)
            self._slots[sink][writer] = slot
            return slot

    def commit(
        self,
        sink: str,
        writer: WriterId,
        held: Slot,
        record: ProgressRecord,
        written: Mapping[str, Sequence[Row]],
    ) -> Slot:
        """Make rows and record visible together, by compare-and-set on what the writer holds.

        :param written: rows by output.
        :raises FencedError: another run or another holder came first; nothing has changed.
        """
        with self._lock:
            self._demand_same(sink, writer, held)
            for name, rows in written.items():
                self.outputs[name].rows.extend(rows)
            slot = Slot(held.run, uuid.uuid4().hex, record)
            self._slots[sink][writer] = slot
            return slot

    def stage(self, name: str, stage: Stage) -> None:
        """Keep rows for a commit of the driver."""
        with self._lock:
            self._stages[name] = stage

    def publish(
        self, sink: str, run: str, record: ProgressRecord, tokens: Sequence[Token], outputs: Outputs
    ) -> None:
        """Make the rows of exactly these tokens visible with the record, unless they are already.

        :raises FencedError: another run is in force, or the newest epoch is not the one before.
        :raises LostStageError: what a token stands for is gone.
        """
        with self._lock:
            held = self._slot_of(sink, run, SINGLE_WRITER)
            if held.record == record:
                return
            newest = self.history(sink)
            if record.generation == newest.generation and record.epoch != newest.epoch + 1:
                raise FencedError(
                    f'epoch {record.epoch} of sink "{sink}" does not follow epoch {newest.epoch}',
                    "Somebody else has committed, or this is long done.",
                )
            stages = [self._stage_of(token) for token in tokens]
            written = {outputs.data: [row for stage in stages for row in stage.rows]}
            if outputs.dead_letter:
                written[outputs.dead_letter] = [row for stage in stages for row in stage.dead]
            self.commit(sink, SINGLE_WRITER, held, record, written)
            self.drop([token.name for token in tokens])

    def drop(self, names: Iterable[str]) -> None:
        """Forget staged rows."""
        with self._lock:
            for name in names:
                self._stages.pop(name, None)

    def sweep(self, run: str) -> None:
        """Forget what other runs staged."""
        with self._lock:
            self.drop([name for name, stage in self._stages.items() if stage.run != run])

    def staged(self) -> tuple[str, ...]:
        """Return the names of what is staged."""
        with self._lock:
            return tuple(self._stages)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody change anything meanwhile."""
        with self._lock:
            yield

    def _slot_of(self, sink: str, run: str, writer: WriterId) -> Slot:
        slot = self._slots.get(sink, {}).get(writer)
        if slot is None or slot.run != run:
            raise _overtaken(sink, slot.run if slot else "none", run)
        return slot

    def _demand_same(self, sink: str, writer: WriterId, held: Slot) -> None:
        if self._slots.get(sink, {}).get(writer) != held:
            found = self.run_in_force(sink, writer)
            raise _overtaken(sink, found, held.run)

    def _stage_of(self, token: Token) -> Stage:
        if token.name not in self._stages:
            raise LostStageError(
                f"what writer {token.writer} staged is gone", f"There is no stage {token.name}."
            )
        return self._stages[token.name]


@dataclass(frozen=True)
class Outputs:
    """The names of a sink's outputs and of its progress place."""

    data: str
    progress: str
    dead_letter: str | None = None


def _overtaken(sink: str, found: str, run: str) -> SinkError:
    if found == run:
        return UnavailableError(f'a writer of sink "{sink}" was fenced by another attempt', f"Run {run}.")
    return FencedError(
        f'a newer start of sink "{sink}" took over',
        f"Run {found} is in force; this is run {run}.",
        "Nothing to do if the newer start is yours; else find out who runs the same sink.",
    )
