"""Delta tables, as a run of a sink changes them."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_sinks.connectors.delta import log, progress
from airflow_provider_sinks.connectors.delta.adding import add, left_of
from airflow_provider_sinks.connectors.delta.factory import STAGED, DeltaWriterFactory
from airflow_provider_sinks.connectors.delta.features import unfit
from airflow_provider_sinks.connectors.delta.layout import (
    PARTITIONED_BY,
    Layout,
    TablePlan,
    demand_unaltered,
)
from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.merging import merge
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.table_format.attempts import attempts
from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError, OvertakenError
from airflow_provider_sinks.connectors.table_format.fit import written
from airflow_provider_sinks.connectors.table_format.format import Change, Judge, TableFormat
from airflow_provider_sinks.connectors.table_format.letters import letter_columns
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.stage import StagedFile, StageFolder
from airflow_provider_sinks.connectors.table_format.state import PREFIX, Place, Standing, State
from airflow_provider_sinks.connectors.table_format.sweep import elsewhere
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.errors import RefusedError

if TYPE_CHECKING:
    from deltalake import CommitProperties
    from deltalake.transaction import AddAction

_COMMITS_SEARCHED = 1000
_STATISTICS = "json"


class DeltaTables(TableFormat[DeltaVersion]):
    """The tables of one sink. Each is loaded anew for each look: nothing is kept between them.

    :param options: of their storage; hold secrets.
    """

    def __init__(self, sink: SinkTables, target: DeltaTarget, options: DeltaOptions) -> None:
        self._sink = sink
        self._target = target
        self._options = options
        self.files = DeltaFiles(options.parameters, *sink.names.values())
        self._layout: Layout | None = None
        self._columns: tuple[str, ...] = ()

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return self._sink.name

    def load(self, name: str) -> DeltaVersion:
        """Return a table as it is now."""
        return log.load(self._options, name)

    def state(self, table: DeltaVersion) -> State | None:
        """Return the progress that a table names."""
        return progress.read(table, self._files_of(table), self._sink.name)

    def standing(self, table: DeltaVersion, place: Place | None) -> Standing:
        """Say whether a table goes on from a version."""
        with log.asking(self._options, table.name):
            return progress.standing(table, place)

    def publish(self, name: str, judge: Judge[DeltaVersion]) -> bool:
        """Change a table by one commit, which makes the version behind the one that was judged."""
        for _ in attempts(name):
            table = self.load(name)
            version = table.number + 1
            change = judge(table, self.state(table), Place(version, version))
            if change is None:
                return False
            with suppress(OvertakenError):
                if left := left_of(table, change.steps):
                    self._add(table, left, change.state)
                    continue
                self._commit(table, version, change)
                return True
        raise AssertionError("the last attempt raises")

    def added(self, table: DeltaVersion, staged: Iterable[StagedFile]) -> Sequence[AddAction | StagedFile]:
        """Return staged files as a commit has them; those that are merged as they are."""
        files = list(staged)
        if self._is_merged(table.name):
            return files
        return [_add_action(table, file) for file in files]

    def demand_as_begun(self, table: DeltaVersion) -> None:
        """See that files mean what they meant, and that nobody has turned on what is not written."""
        if self._layout is not None:
            demand_unaltered(table, self._layout, self._columns, self._sink.name)
        found = unfit(table, replaces_rows=not self.keeps_staged)
        if found is not None:
            primary = f'table "{table.name}" cannot be written any more'
            raise RefusedError(primary, f"It {found.what}. {found.why}", found.repair)

    def referenced(self, tables: Iterable[DeltaVersion], paths: Collection[str]) -> set[str]:
        """Return which of these files a table has now, or had: as far as the log tells, and else all of them.

        What is left by that VACUUM removes.
        """
        loaded = list(tables)
        found = elsewhere(paths, (table.name for table in loaded))
        for table in loaded:
            known = {
                f"{table.name}/{path}" for path in table.raw.get_add_actions().column("path").to_pylist()
            }
            found |= known & set(paths)
            found |= self._named(table, set(paths) - found)
        return found

    def stages(self, table: DeltaVersion) -> StageFolder:
        """Return where the sink's stages lie, beside its data table."""
        return StageFolder(self.files, f"{table.name}/{STAGED}/{self._sink.name}")

    def factory(
        self,
        run: str,
        circumstances: Circumstances,
        columns: Sequence[str],
        data: DeltaVersion,
        dead: DeltaVersion | None,
    ) -> DeltaWriterFactory:
        """Return what makes writers of data files."""
        self._layout = Layout.of(data)
        names = written([*columns] or [*self._layout.columns], self._target.columns)
        self._columns = self._layout.rules.filled(names)
        return DeltaWriterFactory(
            sink=self._sink.name,
            run=run,
            circumstances=circumstances,
            columns=self._columns,
            key=self._target.key,
            stages=self.stages(data),
            data=TablePlan.of(data),
            dead=TablePlan.of(dead) if dead is not None else None,
            letter_columns=letter_columns(Layout.of(dead).columns) if dead is not None else (),
            has_deletes=self._sink.has_deletes,
        )

    @property
    def keeps_staged(self) -> bool:
        """Whether rows are appended; a merge writes files of its own."""
        return self._target.mode is Mode.APPEND

    def _commit(self, table: DeltaVersion, version: int, change: Change) -> None:
        """Commit a change.

        :raises OvertakenError: somebody else has made this version.
        """
        files, sink, state = self._files_of(table), self._sink.name, change.state
        progress.keep(files, table.name, sink, version, state)
        properties = log.once(
            progress.said(sink, state, change.writer, change.record),
            progress.transactions(sink, version, state),
            int(time.time() * 1000),
        )
        log.commit(self._options, table.name, lambda: self._act(table, version, change, properties))
        progress.forget_before(table, files, sink)

    def _add(self, table: DeltaVersion, columns: dict[str, SparkType], state: State) -> None:
        """Give a table columns by a commit of its own; the change that wants them is judged anew behind it.

        :raises OvertakenError: somebody else has made this version.
        """
        properties = log.once({f"{PREFIX}{self._sink.name}.altered_by": state.run}, {}, 0)
        log.commit(self._options, table.name, lambda: add(table, columns, properties))

    def _act(self, table: DeltaVersion, version: int, change: Change, properties: CommitProperties) -> None:
        is_merged = self._is_merged(table.name)
        if is_merged and change.files:
            has_changed = merge(table, list(change.files), self.files, self._target.key, properties)
            if has_changed or not self._sink.has_deletes:
                _demand_made(table, version)
                return
        table.raw.create_write_transaction(
            [] if is_merged else list(change.files),
            "append",
            table.raw.schema(),
            partition_by=list(table.partitioned_by),
            commit_properties=properties,
        )

    def _is_merged(self, name: str) -> bool:
        return name == self._sink.data and not self.keeps_staged

    def _files_of(self, table: DeltaVersion) -> DeltaFiles:
        """Return the storage of a table, which a sink may have had before, and has no more."""
        if table.name in self._sink.names.values():
            return self.files
        return DeltaFiles(self._options.parameters, table.name)

    def _named(self, table: DeltaVersion, paths: set[str]) -> set[str]:
        """Return which files a commit names, of those that are still in the log."""
        if not paths:
            return set()
        if table.number > _COMMITS_SEARCHED:
            return {path for path in paths if path.startswith(f"{table.name}/") and STAGED not in path}
        found: set[str] = set()
        for version in range(table.number + 1):
            with suppress(FileNotFoundError):
                text = self.files.read(f"{table.name}/{log.LOG}/{version:020}.json").decode()
                found |= {path for path in paths if path.rpartition("/")[2] in text}
        return found


def _demand_made(table: DeltaVersion, version: int) -> None:
    """See that a merge has committed: one that finds nothing to do would not, and the progress with it.

    :raises InDoubtError: it has not.
    """
    if table.raw.version() != version:
        raise InDoubtError(
            f"a commit to table {table.name} was not answered",
            f"The table is at version {table.raw.version()} behind a merge that should have made {version}.",
            "The table's own progress tells: nothing is written twice.",
        )


def _add_action(table: DeltaVersion, file: StagedFile) -> AddAction:
    """Return a staged file as a commit adds it.

    :raises ElsewhereError: it was staged for another table.
    :raises ValueError: the table has another partitioning.
    """
    from deltalake.transaction import AddAction

    if not file.path.startswith(f"{table.name}/"):
        raise ElsewhereError(f"{file.path} is no file of table {table.name}")
    by = list(table.partitioned_by)
    if file.layout.get(PARTITIONED_BY, by) != by:
        raise ValueError(f"the table is partitioned by {by}")
    values = dict(zip(by, file.partition, strict=True))
    return AddAction(
        path=quote(file.path.removeprefix(f"{table.name}/")),
        size=file.size_bytes,
        partition_values=values,
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(file.statistics[_STATISTICS]),
    )
