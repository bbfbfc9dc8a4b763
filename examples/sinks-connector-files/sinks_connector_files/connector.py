"""The target of one sink, on the driver: everything that is true of it stands in its log."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, Token
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    Unfit,
)
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord, WriterId
from sinks_connector_files import disk, tables
from sinks_connector_files.log import Entry, Log
from sinks_connector_files.writer import FilesWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SYSTEM = "files"
_TIMEOUT = timedelta(minutes=15)
_OUTPUTS = (Role.DATA, Role.DEAD_LETTER)


class FilesConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what.

    :param sink: the sink's name.
    :param folders: of its outputs and its progress.
    """

    def __init__(self, sink: str, folders: Mapping[Role, str]) -> None:
        self._sink = sink
        self._folders = {role: Path(folder) for role, folder in folders.items()}
        self._log = Log(self._folders[Role.PROGRESS], sink)
        self._run = ""
        self._number, self._newest = 0, Entry()
        self._lock = threading.RLock()  # the guard asks while an epoch is committed

    @property
    def service(self) -> str:
        """Where the files are."""
        return f"folder {self._folders[Role.DATA]}"

    def capabilities(self) -> Capabilities:
        """Return that the driver commits."""
        return Capabilities(CommitsOn.DRIVER)

    def project(self, output: DataFrame) -> DataFrame:
        """Return the rows as they are: Parquet has a type for each of Spark's."""
        from airflow_provider_sinks.connectors import rows
        from airflow_provider_sinks.connectors.encoding import named, own_columns

        raw = rows.RAW if Role.DEAD_LETTER in self._folders else ()
        return output.select(*rows.COORDINATES, *map(named, own_columns(output)), *raw)

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the folders, and read the newest entry of the log."""
        seen = self.identify()
        history: History | None = NO_HISTORY
        reason = ""
        try:
            if seen[Role.PROGRESS].existence is Existence.PRESENT:
                history = self.progress()
        except UnavailableError as error:
            history, reason = None, error.detail
        if seen[Role.PROGRESS].existence is Existence.UNKNOWN:
            history, reason = None, seen[Role.PROGRESS].reason
        dead_letter = seen.get(Role.DEAD_LETTER)
        return Observation(
            source=source,
            data=_sized(seen[Role.DATA]),
            progress=seen[Role.PROGRESS],
            dead_letter=_sized(dead_letter) if dead_letter else None,
            history=history,
            history_reason=reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Read the markers."""
        return {role: self._facts(folder) for role, folder in self._folders.items()}

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force, once. That fences every driver, and no writer can commit."""
        del writers, looked
        if self._run == run.id:
            self.demand_in_force()
            return True
        self._run = run.id
        taken = False
        while not taken:
            number, newest = self._log.newest()
            entry = Entry(run.id, newest.records)
            taken = self._append(number, entry)
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a folder a table, unless it is one."""
        folder, sink = Path(creation.name), self._sink if creation.role in _OUTPUTS else ""
        with disk.answering(folder):
            tables.make(folder, sink)

    def announce(self, record: ProgressRecord) -> None:
        """Write a record of the driver, unless that is done."""
        try:
            self._commit(DRIVER, record)
        except InDoubtError as doubt:
            raise UnavailableError(doubt.primary, doubt.detail) from doubt

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when another run has written."""
        with self._lock:
            self._follow()

    def factory(self) -> FilesWriterFactory:
        """Return what makes the writers of the announced run."""
        found = {role: tables.find(self._folders[role]) for role in _OUTPUTS if role in self._folders}
        places = {role: (self._folders[role], table.contents) for role, table in found.items() if table}
        return FilesWriterFactory(self._run, places[Role.DATA], places.get(Role.DEAD_LETTER))

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Write the manifest: one entry that names the files and carries the record."""
        self._commit(SINGLE_WRITER, record, tuple(name for token in tokens for name in token.name.split()))

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Remove the files of these tokens, unless a manifest names them; what cannot be seen stays."""
        try:
            named = self._named()
            given = {name for token in tokens for name in token.name.split()} - named
            for role in _OUTPUTS:
                for name in given if role in self._folders else ():
                    (self._folders[role] / name).unlink(missing_ok=True)
        except (SinkError, OSError):
            return

    def progress(self) -> History:
        """Return what the newest entry says."""
        return History(dict(self._log.newest()[1].records))

    def sweep(self) -> None:
        """Remove what older runs staged: they cannot commit it any more.

        Listed first, judged then: what a newer run stages is not in the list while this run is in force.
        """
        folders = [self._folders[role] for role in _OUTPUTS if role in self._folders]
        with disk.answering(self._folders[Role.DATA]):
            left = [file for folder in folders for file in tables.leftovers(folder, self._run)]
        self.demand_in_force()
        named = self._named()
        with disk.answering(self._folders[Role.DATA]):
            tables.sweep(left, named)

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return every epoch: the log keeps all."""
        return past_epochs(found for entry in self._log.all() for found in entry.records.items())

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table or delete it, if it is still the one that was looked at.

        Tables and log are folders of their own: who is in force is asked right before.
        """
        folder = Path(step.facts.name)
        if tables.find(self._folders[Role.PROGRESS]) is not None:  # a drop may have deleted it already
            self.demand_in_force()
        with disk.answering(folder):
            table = tables.find(folder)
            if table is None:
                return
            if table.id != step.facts.id:
                raise RefusedError(f'table "{folder}" is not the one any more that was looked at')
            if isinstance(step, EmptyOutput):
                tables.empty(folder, table)
            else:
                tables.delete(folder)

    def health_check(self) -> Health:
        """Return whether the log can be written."""
        folder = self._folders[Role.PROGRESS]
        is_well = os.access(folder, os.W_OK)
        return Health(is_well, "" if is_well else f"{folder} cannot be written")

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return how long the log is."""
        return {"log_entries": self._number}

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open; nothing here ends one."""
        return _TIMEOUT

    def _commit(self, writer: WriterId, record: ProgressRecord, names: tuple[str, ...] = ()) -> None:
        """Write the entry behind ours that carries the record, unless it is there.

        Whoever writes in between, we look again: at ourselves in an answer that was lost, or at a newer run.
        """
        with self._lock:
            while self._follow().records.get(writer) != record:
                if writer == SINGLE_WRITER:
                    self._demand_next(record)
                    self._demand_staged(names)
                entry = Entry(self._run, {**self._newest.records, writer: record}, names)
                self._append(self._number, entry)

    def _append(self, number: int, entry: Entry) -> bool:
        if not self._log.append(number + 1, entry):
            return False
        self._number, self._newest = number + 1, entry
        return True

    def _follow(self) -> Entry:
        """Return the newest entry, which is of this run.

        :raises FencedError: it is another's, or the log is not the one any more that this run wrote into.
        """
        if self._log.at(self._number) != self._newest:
            raise self._overtaken("The log is not the one that this run has written into.")
        while (entry := self._log.at(self._number + 1)) is not None:
            if entry.run != self._run:
                raise self._overtaken(f"Run {entry.run} is in force; this is run {self._run}.")
            self._number, self._newest = self._number + 1, entry
        return self._newest

    def _demand_next(self, record: ProgressRecord) -> None:
        known = History(dict(self._newest.records))
        if record.generation == known.generation and record.epoch != known.epoch + 1:
            raise FencedError(
                f'epoch {record.epoch} of sink "{self._sink}" does not follow epoch {known.epoch}',
                "Somebody else has committed, or this is long done.",
            )

    def _demand_staged(self, names: Sequence[str]) -> None:
        folders = [self._folders[role] for role in _OUTPUTS if role in self._folders]
        for name in names:
            if not any((folder / name).exists() for folder in folders):
                raise LostStageError(f"the staged file {name} is gone")

    def _named(self) -> frozenset[str]:
        return frozenset(name for entry in self._log.all() for name in entry.files)

    def _overtaken(self, detail: str) -> FencedError:
        return FencedError(f'a newer start of sink "{self._sink}" took over', detail)

    def _facts(self, folder: Path) -> ResourceFacts:
        facts = ResourceFacts(str(folder), Existence.UNKNOWN, _SYSTEM, kind=ResourceKind.TABLE)
        try:
            table = tables.find(folder)
        except (OSError, ValueError) as error:
            return replace(facts, reason=f"{type(error).__name__}: {error}")
        if table is None:
            return replace(facts, existence=Existence.MISSING)
        unfit = _foreign(table.sink) if table.sink not in ("", self._sink) else None
        return replace(facts, existence=Existence.PRESENT, id=table.id, unfit=unfit)


def _sized(facts: ResourceFacts) -> ResourceFacts:
    """Return what was seen with how much is there at most: files that nobody has committed count too."""
    return replace(facts, size_bytes=tables.size_bytes(Path(facts.name)))


def _foreign(sink: str) -> Unfit:
    return Unfit(
        f'is the table of sink "{sink}"',
        "Its files are named by that sink's manifests alone, and swept by its starts.",
        "Give this sink a folder of its own.",
    )
