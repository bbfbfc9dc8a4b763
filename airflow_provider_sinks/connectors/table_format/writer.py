"""A writer: writes an epoch's rows as data files that no table has yet, and hands them over as a stage.

It fences nobody and knows no record: nothing that it does is visible before the driver publishes, and the
driver takes only the tokens that its own tasks have reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.connectors.letter_rows import LetterRows
from airflow_provider_sinks.connectors.newest_rows import NewestRows
from airflow_provider_sinks.connectors.table_format.data_files import DataFiles
from airflow_provider_sinks.connectors.table_format.factory import StagingFactory
from airflow_provider_sinks.connectors.table_format.stage import Stage, StagedFile, answering, new_name
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId


class StagingWriter:
    """See :class:`.epoch_writer.EpochWriter` for who calls what.

    :param factory: what the sink's writers have in common.
    :param writer: the writer's id.
    """

    def __init__(self, factory: StagingFactory, writer: WriterId) -> None:
        self.holder_id = new_name()
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._writer = writer
        self._letters = LetterRows(factory.letter_columns, factory.circumstances)
        self._begin()

    def open(self) -> None:
        """Do nothing: whoever is overtaken finds out when the driver publishes."""

    def begin_epoch(self, epoch: int) -> None:
        """Begin with no file."""
        told = replace(self._factory.circumstances, epoch=epoch)
        self._letters = LetterRows(self._factory.letter_columns, told)
        self._begin()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Write rows, and set those aside that have an error."""
        errors = rows.column(columns.ERROR)
        dead = len(errors) - errors.null_count
        good = rows if not dead else rows.filter(pc.is_null(errors))
        with answering(self._factory.location):
            if good.num_rows:
                self._take(good.select(list(self._factory.taken)))
            if dead:
                self._dead_files.take(self._letters.of(rows.filter(pc.is_valid(errors)), is_of_target=False))
        self._rows += good.num_rows
        return WriteResult(good.num_rows, dead, rows.nbytes)

    def flush(self) -> None:
        """Return when the files are whole, and their stage says so."""
        with answering(self._factory.location):
            if self._newest is not None:
                self._write_newest(self._newest)
            for files in self._made.values():
                self._staged += files.close()
            if self._staged:
                self._factory.stages.write(self._stage(self._staged, is_whole=True))

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Hand the files over: from here on they are the driver's."""
        del record
        token = Token(self._writer, self._name, self._rows)
        self._begin()
        return token

    def commit_epoch(self) -> None:
        """Is never called: the driver publishes."""

    def rollback_epoch(self) -> None:
        """Remove what was not handed over; what stays is named by its stage, and swept by the next start."""
        for files in self._made.values():
            files.abandon()
        if self._made:
            with suppress(Exception):
                self._factory.stages.remove(self._stage(self._staged, is_whole=False), with_files=True)
        self._begin()

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _begin(self) -> None:
        self._name, self._rows = new_name(), 0
        self._made: dict[tuple[Role, bool], DataFiles[Any]] = {}
        self._staged: list[StagedFile] = []
        self._newest: NewestRows | None = NewestRows(self._factory.key) if self._factory.key else None

    def _take(self, good: pa.RecordBatch) -> None:
        if self._newest is not None:
            self._newest.take(good)
        else:
            self._data_files.take(good)

    def _write_newest(self, newest: NewestRows) -> None:
        """Write the newest row of each key, and the keys; nothing where there was no row.

        A row that is gone is not written where its key is: that deletes the older ones.
        """
        if self._rows:
            if self._factory.writes_keys:
                self._files(Role.DATA, self._factory.key, is_of_keys=True).take(newest.keys())
            for batch in newest.newest():
                self._take_staged(batch)
        newest.close()

    def _take_staged(self, batch: pa.RecordBatch) -> None:
        if self._factory.has_deletes and self._factory.writes_keys:
            batch = batch.filter(pc.invert(batch.column(columns.DELETED)))
        if batch.num_rows:
            self._data_files.take(batch.select(list(self._factory.staged)))

    @property
    def _data_files(self) -> DataFiles[Any]:
        return self._files(Role.DATA, self._factory.staged)

    @property
    def _dead_files(self) -> DataFiles[Any]:
        return self._files(Role.DEAD_LETTER, self._factory.letter_columns)

    def _files(self, role: Role, names: tuple[str, ...], *, is_of_keys: bool = False) -> DataFiles[Any]:
        if (role, is_of_keys) not in self._made:
            made = self._factory.files(role, names, self._announce, is_of_keys=is_of_keys)
            self._made[role, is_of_keys] = made
        return self._made[role, is_of_keys]

    def _announce(self, coming: Iterable[StagedFile]) -> None:
        """Name files before they are there: a writer that is killed leaves nothing unnamed."""
        known = [file for files in self._made.values() for file in files.files]
        self._factory.stages.write(self._stage([*known, *coming], is_whole=False))

    def _stage(self, files: Iterable[StagedFile], *, is_whole: bool) -> Stage:
        return Stage(self._name, self._factory.run, tuple(files), is_whole)
