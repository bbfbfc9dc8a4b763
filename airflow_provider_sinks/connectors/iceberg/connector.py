"""The Iceberg target of one sink: writers stage data files, the driver publishes them in one snapshot.

The order of a commit, and why it is exactly once:

1. The rows of an epoch become visible with its record, and with the names of its dead letters, by one change
   of the data table (:mod:`.publication`): the point of no return.
2. Its dead letters are published in their own table, with the same record. A driver that dies in between
   leaves their names in the data table, and the next start publishes them behind its fence; the record in the
   table of dead letters says whether that was done.
3. The stages are removed. Whatever is left of them is swept by the next start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.base import (
    Capabilities,
    CommitsOn,
    Health,
    MetricValue,
    Run,
    Say,
)
from airflow_provider_sinks.connectors.epoch_writer import LostStageError, Token
from airflow_provider_sinks.connectors.iceberg import observe as look
from airflow_provider_sinks.connectors.iceberg import protocol
from airflow_provider_sinks.connectors.iceberg.catalog import (
    HiddenError,
    Layout,
    MissingError,
    OvertakenError,
    TableCatalog,
)
from airflow_provider_sinks.connectors.iceberg.creation import (
    LAYOUT,
    CreateTable,
    KeepProgress,
    SparkType,
)
from airflow_provider_sinks.connectors.iceberg.factory import IcebergWriterFactory, TablePlan
from airflow_provider_sinks.connectors.iceberg.fit import demand_fit, new_table, written
from airflow_provider_sinks.connectors.iceberg.options import STORAGE, IcebergOptions
from airflow_provider_sinks.connectors.iceberg.partitions import partition_spec
from airflow_provider_sinks.connectors.iceberg.progress import (
    Place,
    State,
    read,
    said_by,
    standing,
    summary,
)
from airflow_provider_sinks.connectors.iceberg.publication import Change, publish
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.stage import Stage, StageFolder
from airflow_provider_sinks.connectors.iceberg.sweep import referenced, sweep
from airflow_provider_sinks.connectors.iceberg.types import columns_of, created
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    demand_makeable,
)
from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    JobFailedError,
    Problem,
    RefusedError,
    SinkError,
)
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressFormatError,
    ProgressRecord,
    WriterId,
)

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame

_TIMEOUT = timedelta(hours=1)
_SLOW_EPOCHS = 5


@dataclass(frozen=True)
class SinkTables:
    """A sink, as far as its Iceberg target is concerned.

    :param name: the sink's name.
    :param dead_letter: the table of what is set aside, or ``None``.
    :param every: how often an epoch begins; ``None`` where the sink takes what is there and ends.
    """

    name: str
    target: IcebergTarget
    dead_letter: str | None = None
    every: timedelta | None = None

    @property
    def names(self) -> dict[Role, str]:
        """Its tables; the progress stands in the first."""
        found = {Role.DATA: self.target.table}
        return found | ({Role.DEAD_LETTER: self.dead_letter} if self.dead_letter else {})


class IcebergConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what, and when.

    :param sink: what is written where.
    :param options: of its catalog; holds secrets.
    :param say: told what a person should know although nothing stops.
    """

    def __init__(self, sink: SinkTables, options: IcebergOptions, say: Say = lambda _: None) -> None:
        self._sink = sink
        self._catalog = TableCatalog(options)
        self._say = say
        self._run: Run | None = None
        self._has_taken = False
        self._columns: Mapping[str, SparkType] = {}
        self._layout: Layout | None = None
        self._stages: StageFolder | None = None
        self._metrics: dict[str, MetricValue] = {}
        self._slow = 0

    @property
    def service(self) -> str:
        """Which catalog this is, for a sentence."""
        return self._catalog.service

    def capabilities(self) -> Capabilities:
        """Return that the driver publishes."""
        return Capabilities(CommitsOn.DRIVER)

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open: nothing ends one but whoever removes orphan files."""
        return _TIMEOUT

    # ---- columns

    def schema(self) -> Mapping[str, str]:
        """Return the types of the table's columns, or nothing where it is still to be made."""
        _, table = look.look(self._catalog, self._sink.target.table, self._sink.name, Role.DATA)
        return {n: column.iceberg for n, column in columns_of(table.schema()).items()} if table else {}

    def expect(self, output: DataFrame) -> None:
        """Keep the query's columns for a table that is still to be made; compare them with one that is."""
        from airflow_provider_sinks.connectors.iceberg.encoding import types_of

        self._columns = types_of(output)
        self._fitting(self._columns)

    def project(self, output: DataFrame) -> DataFrame:
        """Return the columns with exactly the types of the table."""
        from airflow_provider_sinks.connectors.iceberg.encoding import encode, types_of

        self._columns = types_of(output)
        table, target = columns_of(self._fitting(self._columns)), self._sink.target
        columns = {name: table[name] for name in written(list(self._columns), target)}
        return encode(output, columns, target.key, keeps_raw=self._sink.dead_letter is not None)

    # ---- looking

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the tables, and read the progress in the first."""
        seen = {role: self._look(role) for role in self._sink.names}
        data, table = seen[Role.DATA]
        dead = seen[Role.DEAD_LETTER][0] if Role.DEAD_LETTER in seen else None
        reason, grant = self._catalog.obstacle()
        if reason:
            data = replace(data, existence=Existence.UNKNOWN, reason=reason, grant=grant)
            dead = replace(dead, existence=Existence.UNKNOWN, reason=reason, grant=grant) if dead else None
        is_seen = data.existence is not Existence.UNKNOWN
        return Observation(
            source=source,
            data=data,
            progress=_progress(data, table),
            dead_letter=dead,
            history=look.history(table, self._sink.name) if is_seen else None,
            history_reason=data.reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Return which tables these are now."""
        seen = {role: self._look(role) for role in self._sink.names}
        progress = _progress(*seen[Role.DATA])
        return {**{role: facts for role, (facts, _) in seen.items()}, Role.PROGRESS: progress}

    def progress(self) -> History:
        """Read what is committed now."""
        return self._look_history(self._look(Role.DATA)[1])

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return the epochs of all snapshots that were not expired yet."""
        table = self._look(Role.DATA)[1]
        return past_epochs(self._told(table)) if table is not None else ()

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return schema and partitioning; properties that somebody has set are lost with the table."""
        return {LAYOUT: Layout.of(self._catalog.load(output.name)).to_json()}

    def health_check(self) -> Health:
        """Load the table; say so where commits take longer than the time between them."""
        try:
            table = self._look(Role.DATA)[1]
        except SinkError as error:
            return Health(False, error.detail or error.primary)
        if table is not None and table.metadata.current_snapshot() is not None:
            self._metrics["snapshots"] = len(table.metadata.snapshots)
        if self._slow >= _SLOW_EPOCHS and self._sink.every is not None:
            seconds = self._sink.every.total_seconds()
            return Health(
                False,
                f"the last {self._slow} commits took longer than the {seconds:g} s between two epochs: "
                "maintain the table, or raise trigger.every",
            )
        return Health(True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return how long the last commit took, of how many files, and how many snapshots there are."""
        return dict(self._metrics)

    # ---- a start

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force in both tables, once; it is told whether that is done.

        Where the data table is missing nobody can publish. What a start makes there it takes by its
        announcement, which only one of two first starts can make. Then dead letters are published that a
        driver has left behind.
        """
        del writers
        if self._has_taken:
            self.demand_in_force()
            return True
        self._run = run
        if looked.data.existence is Existence.MISSING:
            return True
        for name in self._sink.names.values():
            with suppress(MissingError):  # judged by the decision
                publish(self._catalog, name, self._sink.name, self._taking)
        self._has_taken = True
        self._publish_pending()
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a table, unless it is there; the progress needs nothing but the data table."""
        if isinstance(creation, KeepProgress):
            return
        if not isinstance(creation, CreateTable):
            raise JobFailedError(f"{creation} is not for Iceberg")
        with suppress(MissingError):
            self._catalog.load(creation.name)
            return
        if creation.role is Role.DATA and not creation.layout and self._columns:
            creation = creation.with_columns(self._columns)
        demand_makeable(creation, ResourceKind.TABLE)
        try:
            self._catalog.create(creation.name, *self._layout_of(creation), creation.properties)
        except HiddenError as error:
            title = creation.role.called(ResourceKind.TABLE)
            raise ConfigurationError(
                f"{title} cannot be made", [Problem(creation.name, str(error))], "Let its catalog's owner make it."
            ) from error
        self._layout = None

    def announce(self, record: ProgressRecord) -> None:
        """Commit the driver's record; the table of dead letters is taken first."""
        run, sink = self._live_run.id, self._sink.name
        if self._sink.dead_letter is not None:
            publish(self._catalog, self._sink.dead_letter, sink, self._keeping)

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            stands = standing(table.metadata, state.at if state else None)
            found = protocol.announced(sink, state, stands, run, record, place)
            return Change(found, summary(sink, run, DRIVER, record)) if found else None

        self._present(lambda: publish(self._catalog, self._sink.target.table, sink, judge))
        self._has_taken = True

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink."""
        if not self._has_taken:
            return
        table = self._look(Role.DATA)[1]
        if table is not None:  # else the guard sees that it is gone
            protocol.demand_in_force(self._sink.name, read(table.metadata, self._sink.name), self._live_run.id)

    def factory(self) -> IcebergWriterFactory:
        """Return what makes writers under the announced run."""
        sink, run = self._sink, self._live_run
        data = self._present(lambda: self._catalog.load(sink.target.table))
        dead = self._present(lambda: self._catalog.load(sink.dead_letter)) if sink.dead_letter else None
        self._layout = Layout.of(data)
        names = list(self._columns) or [field.name for field in data.schema().fields]
        return IcebergWriterFactory(
            sink.name,
            run.id,
            run.source,
            written(names, sink.target),
            sink.target.key,
            _plan(data),
            _plan(dead) if dead is not None else None,
            self._stage_folder(data),
        )

    def sweep(self) -> None:
        """Remove what older runs staged. What cannot be removed now stays for the next start."""
        tables = {role: table for role in self._sink.names if (table := self._look(role)[1]) is not None}
        if Role.DATA not in tables:
            return
        state = read(tables[Role.DATA].metadata, self._sink.name)
        kept = state.pending.stages if state and state.pending and not self._is_told(state) else ()
        try:
            removed = sweep(self._stage_folder(tables[Role.DATA]), self._live_run.id, tables, kept)
        except SinkError as error:
            self._say(f"what older runs have staged stays: {error.primary}")
            return
        if removed:
            self._say(f"removed {removed} data files that older runs have staged and never published")

    # ---- an epoch

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Publish what the tokens stand for; what is published already by the same record is well."""
        begun = time.monotonic()
        sink, run = self._sink.name, self._live_run.id
        found: list[Stage] = []

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            stands = standing(table.metadata, state.at if state else None)
            new = protocol.published(sink, state, stands, run, record, place)
            if new is None:
                return None
            found[:] = self._staged(table, tokens)
            self._demand_same_layout(table)
            files = [file.data_file(table.metadata) for stage in found for file in stage.of(Role.DATA)]
            dead = tuple(stage.name for stage in found if stage.of(Role.DEAD_LETTER))
            new = protocol.with_dead_letters(new, record, dead)
            return Change(new, summary(sink, run, SINGLE_WRITER, record), files)

        self._present(lambda: publish(self._catalog, self._sink.target.table, sink, judge))
        self._publish_pending()
        self._forget(found)
        self._account(time.monotonic() - begun, sum(len(stage.files) for stage in found))

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Remove what tokens stand for; of what was published no stage is left, or it is swept later."""
        if self._stages is None:
            return
        for token in tokens:
            with suppress(SinkError, OSError):
                stage = self._stages.read(self._live_run.id, token.name)
                if stage is not None and not self._is_published(stage):
                    self._stages.remove(stage, with_files=True)

    # ---- a reset

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or take it out of its catalog, if it is the one that was looked at."""
        facts, table = look.look(self._catalog, step.facts.name, self._sink.name, Role.DATA)
        if facts.existence is Existence.MISSING or table is None:
            return
        if str(table.metadata.table_uuid) != step.facts.id.partition(" ")[0]:
            raise RefusedError(
                f'table "{step.facts.name}" is not the one any more that was looked at',
                f"It had id {step.facts.id}, now it has {facts.id}.",
                "Somebody else changes it at this moment; look again before anything is deleted.",
            )
        if isinstance(step, DeleteOutput):
            with suppress(MissingError):
                self._catalog.drop(step.facts.name)
        else:
            self._empty(table)
        self._layout = None

    def close(self) -> None:
        """Drop the connections."""
        self._catalog.close()

    # ---- parts

    @property
    def _live_run(self) -> Run:
        assert self._run is not None  # noqa: S101  open comes first
        return self._run

    def _look(self, role: Role) -> tuple[ResourceFacts, Table | None]:
        return look.look(self._catalog, self._sink.names[role], self._sink.name, role)

    def _look_history(self, table: Table | None) -> History:
        return look.history(table, self._sink.name)

    def _taking(self, table: Table, state: State | None, place: Place) -> Change | None:
        """Put this run in force, whoever was."""
        del table, place
        run, sink = self._live_run.id, self._sink.name
        found = protocol.taken(state, run)
        return Change(found, summary(sink, run)) if found else None

    def _keeping(self, table: Table, state: State | None, place: Place) -> Change | None:
        """Take a table that was made a moment ago; leave one that is taken."""
        if state is not None:
            protocol.demand_in_force(self._sink.name, state, self._live_run.id)
            return None
        return self._taking(table, state, place)

    def _present(self, act: Callable[[], Any]) -> Any:
        """Do something with a table that must be there.

        :raises RefusedError: it is not.
        """
        try:
            return act()
        except (MissingError, HiddenError) as error:
            raise RefusedError(
                f'a table of sink "{self._sink.name}" is gone, or hidden', str(error), "Start the sink again."
            ) from error
        except ProgressFormatError as error:
            raise RefusedError(
                f'progress of sink "{self._sink.name}" cannot be read', str(error), "Start the sink again."
            ) from error

    def _fitting(self, given: Mapping[str, SparkType]) -> Schema:
        """Return the table's schema, or what it will be, if the query's columns fit it."""
        if self._layout is None:
            _, table = self._look(Role.DATA)
            self._layout = Layout.of(table) if table is not None else None
        if self._layout is None:
            return new_table(given, self._sink.target)
        schema, spec = self._layout.read()
        demand_fit(given, self._sink.target, schema, spec)
        return schema

    def _layout_of(self, creation: CreateTable) -> tuple[Any, Any]:
        if creation.layout:
            return Layout.from_json(creation.layout).read()
        if creation.role is Role.DATA:
            schema = new_table(creation.columns, self._sink.target)
        else:
            schema = created(creation.columns)
        return schema, partition_spec(creation.partition_by, schema)

    def _stage_folder(self, table: Table) -> StageFolder:
        if self._stages is None:
            given = {name: value for name, value in table.io.properties.items() if name in STORAGE}
            self._stages = StageFolder({**self._catalog.storage, **given}, table.location(), self._sink.name)
        return self._stages

    def _staged(self, table: Table, tokens: Sequence[Token]) -> list[Stage]:
        stages = self._stage_folder(table)
        found = {token.name: stages.read(self._live_run.id, token.name) for token in tokens}
        if lost := [token.writer for token in tokens if found[token.name] is None]:
            raise LostStageError(
                f"what writer {lost[0]} staged is gone",
                f"{len(lost)} of {len(tokens)} stages, or files that they name, are not there.",
            )
        return [stage for stage in found.values() if stage is not None]

    def _demand_same_layout(self, table: Table) -> None:
        """See that files still mean what they meant when they were begun: they go by the ids of columns.

        :raises JobFailedError: columns or partitioning were changed; a start compares them anew.
        """
        if self._layout is None or Layout.of(table) == self._layout:
            return
        schema, spec = self._layout.read()
        now = {field.field_id: field for field in table.schema().fields}
        names = self._written or tuple(field.name for field in schema.fields)
        changed = [f.name for f in schema.fields if f.name in names and now.get(f.field_id) != f]
        if changed or spec != table.spec():
            raise JobFailedError(
                f'table "{self._sink.target.table}" was altered while sink "{self._sink.name}" ran',
                f"Column {changed[0]!r} is another one." if changed else "Its partitioning is another one.",
                "The next start compares the query with the table as it is.",
            )

    @property
    def _written(self) -> tuple[str, ...]:
        return written(list(self._columns), self._sink.target) if self._columns else ()

    def _publish_pending(self) -> None:
        """Publish dead letters whose rows are committed, unless that is done."""
        name, sink, run = self._sink.dead_letter, self._sink.name, self._live_run.id
        data = self._look(Role.DATA)[1]
        state = read(data.metadata, sink) if data is not None else None
        if name is None or data is None or state is None or state.pending is None:
            return
        pending = state.pending
        folder = self._stage_folder(data)
        found: list[Stage] = []

        def judge(table: Table, dead: State | None, place: Place) -> Change | None:
            if dead is not None:
                protocol.demand_in_force(sink, dead, run)
                if dead.epoch == pending.record:
                    return None
            stages = [folder.read(pending.record.run, one) for one in pending.stages]
            found[:] = [stage for stage in stages if stage is not None]
            if len(found) < len(stages):
                self._say(f"dead letters of epoch {pending.record.epoch} are gone: their table was made anew")
            files = [f.data_file(table.metadata) for stage in found for f in stage.of(Role.DEAD_LETTER)]
            new = (dead or State(run)).having(SINGLE_WRITER, pending.record, place)
            return Change(new, summary(sink, run, SINGLE_WRITER, pending.record), files)

        with suppress(MissingError):  # the decision judges a table of dead letters that is gone
            publish(self._catalog, name, sink, judge)

    def _is_told(self, state: State) -> bool:
        """Whether the pending dead letters of a state are in their table."""
        if Role.DEAD_LETTER not in self._sink.names or state.pending is None:
            return True
        table = self._look(Role.DEAD_LETTER)[1]
        dead = read(table.metadata, self._sink.name) if table is not None else None
        return dead is not None and dead.epoch == state.pending.record

    def _is_published(self, stage: Stage) -> bool:
        """Whether a table has files of a stage. Asked before they are removed: that cannot be taken back."""
        tables = [table for role in self._sink.names if (table := self._look(role)[1]) is not None]
        return bool(referenced(tables, {file.path for file in stage.files}))

    def _forget(self, stages: Iterable[Stage]) -> None:
        for stage in stages:
            with suppress(SinkError, OSError):  # the next start sweeps them
                if self._stages is not None:
                    self._stages.remove(stage, with_files=False)

    def _account(self, seconds: float, files: int) -> None:
        self._metrics |= {"commit_ms": int(seconds * 1000), "commit_files": files}
        every = self._sink.every
        self._slow = self._slow + 1 if every is not None and seconds > every.total_seconds() else 0
        if self._slow == _SLOW_EPOCHS:
            self._say(self.health_check().detail)

    def _empty(self, table: Table) -> None:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.table import Transaction

        if not look.size_bytes(table):
            return
        changes = Transaction(table, autocommit=False)
        changes.delete(AlwaysTrue())
        try:
            self._catalog.commit(table, changes)
        except OvertakenError as error:
            raise RefusedError(
                f'table "{".".join(table.name())}" was changed while it was emptied',
                str(error),
                "Look again before anything is deleted.",
            ) from error

    def _told(self, table: Table) -> list[tuple[WriterId, ProgressRecord]]:
        import json

        found: list[tuple[WriterId, ProgressRecord]] = []
        for snapshot in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0):
            with suppress(ProgressFormatError):
                said = said_by(snapshot, self._sink.name)
                if said is not None and "record" in said:
                    record = ProgressRecord.decode(json.dumps(said["record"]).encode())
                    found.append((str(said["writer"]), record))
        return found


def _progress(data: ResourceFacts, table: Table | None) -> ResourceFacts:
    """Return the progress place: the data table, whatever it lacks."""
    uuid = str(table.metadata.table_uuid) if table is not None else ""
    return replace(data, id=uuid, unfit=None, size_bytes=0)


def _plan(table: Table) -> TablePlan:
    properties = {k: v for k, v in table.properties.items() if k.startswith("write.")}
    return TablePlan(table.location(), Layout.of(table), table.spec().spec_id, properties)
