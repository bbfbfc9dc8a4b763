"""The Iceberg target of one sink: writers stage data files, the driver publishes them in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run, Say
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.connectors.iceberg import observe as look
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.catalog_errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.iceberg.creation import LAYOUT, CreateTable, KeepProgress, SparkType
from airflow_provider_sinks.connectors.iceberg.factory import IcebergWriterFactory
from airflow_provider_sinks.connectors.iceberg.fit import demand_fit, layout_of, new_table, written
from airflow_provider_sinks.connectors.iceberg.layout import Layout
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.progress import records_of_snapshots
from airflow_provider_sinks.connectors.iceberg.publisher import Publisher
from airflow_provider_sinks.connectors.iceberg.resetting import reset_table
from airflow_provider_sinks.connectors.iceberg.sink_tables import SinkTables
from airflow_provider_sinks.connectors.iceberg.spec import Mode
from airflow_provider_sinks.connectors.iceberg.types import columns_of
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
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame

_TIMEOUT = timedelta(hours=1)
_SLOW_EPOCHS = 5


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
        self._publisher: Publisher | None = None
        self._has_taken = False
        self._columns: Mapping[str, SparkType] = {}
        self._layout: Layout | None = None
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
        table = self._look(Role.DATA)[1]
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
        data, table = self._look(Role.DATA)
        if table is not None and self._sink.target.mode is Mode.UPSERT:
            data = look.with_other_files(data, table)
        dead = self._look(Role.DEAD_LETTER)[0] if self._sink.dead_letter else None
        reason, grant = self._catalog.obstacle()
        if reason:
            data = replace(data, existence=Existence.UNKNOWN, reason=reason, grant=grant)
            dead = replace(dead, existence=Existence.UNKNOWN, reason=reason, grant=grant) if dead else None
        is_seen = data.existence is not Existence.UNKNOWN
        return Observation(
            source=source,
            data=data,
            progress=look.progress_place(data, table),
            dead_letter=dead,
            history=look.history(table, self._sink.name) if is_seen else None,
            history_reason=data.reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Return which tables these are now."""
        seen = {role: self._look(role) for role in self._sink.names}
        progress = look.progress_place(*seen[Role.DATA])
        return {**{role: facts for role, (facts, _) in seen.items()}, Role.PROGRESS: progress}

    def progress(self) -> History:
        """Read what is committed now."""
        return look.history(self._look(Role.DATA)[1], self._sink.name)

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return the epochs of all snapshots that were not expired yet."""
        table = self._look(Role.DATA)[1]
        if table is None:
            return ()
        return past_epochs(records_of_snapshots(table.metadata, self._sink.name))

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return schema and partitioning; properties that somebody has set are lost with the table."""
        try:
            return {LAYOUT: Layout.of(self._catalog.load(output.name)).to_json()}
        except (MissingError, HiddenError) as error:
            primary = f'layout of table "{output.name}" could not be read'
            raise UnavailableError(primary, str(error), "Look at the table again.") from error

    def health_check(self) -> Health:
        """Load the table; say so where commits take longer than the time between them."""
        try:
            table = self._look(Role.DATA)[1]
        except SinkError as error:
            return Health(False, error.detail or error.primary)
        if table is not None:
            self._metrics["snapshots"] = len(table.metadata.snapshots)
        return Health(False, self._slowness) if self._slowness else Health(True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return how long the last commit took, of how many files, and how many snapshots there are."""
        return dict(self._metrics)

    # ---- a start

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force in both tables, once; it is told whether that is done.

        Where the data table is missing nobody can publish. What a start makes there it takes by its
        announcement, which only one of two first starts can make. A table of dead letters that is still
        there is taken now: it names the run of a table that is gone.
        """
        del writers
        if self._has_taken:
            self.demand_in_force()
            return True
        self._publisher = Publisher(self._sink, self._catalog, run, self._say)
        if looked.data.existence is Existence.MISSING:
            if looked.dead_letter is not None and looked.dead_letter.existence is Existence.PRESENT:
                self._publisher.take_dead_letters()
            return True
        self._publisher.take()
        self._has_taken = True
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a table, unless it is there; the progress needs nothing but the data table."""
        if isinstance(creation, KeepProgress):
            return
        if not isinstance(creation, CreateTable):
            raise JobFailedError(f"{creation} is not for Iceberg")
        try:
            self._make(creation)
        except HiddenError as error:
            title = creation.role.called(ResourceKind.TABLE)
            problem = Problem(creation.name, str(error))
            hint = "Let the owner of the catalog make it."
            raise ConfigurationError(f"{title} cannot be made", [problem], hint) from error
        self._layout = None

    def announce(self, record: ProgressRecord) -> None:
        """Commit the driver's record, which takes tables that were made a moment ago."""
        self._live.announce(record)
        self._has_taken = True

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink."""
        if self._has_taken:
            self._live.demand_in_force()

    def factory(self) -> IcebergWriterFactory:
        """Return what makes writers under the announced run."""
        return self._live.factory(list(self._columns))

    def sweep(self) -> None:
        """Remove what older runs staged."""
        self._live.sweep()

    # ---- an epoch

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Publish what the tokens stand for; what is published already by the same record is well."""
        begun, every = time.monotonic(), self._sink.every
        files = self._live.commit(record, tokens)
        seconds = time.monotonic() - begun
        self._metrics |= {"commit_ms": int(seconds * 1000), "commit_files": files}
        self._slow = self._slow + 1 if every is not None and seconds > every.total_seconds() else 0
        if self._slow == _SLOW_EPOCHS:
            self._say(self._slowness)

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Remove what tokens stand for, unless it was published."""
        self._live.rollback(tokens)

    # ---- a reset

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or take it out of its catalog, if it is the one that was looked at."""
        reset_table(self._catalog, self._sink.name, step)
        self._layout = None

    def close(self) -> None:
        """Drop the connections."""
        self._catalog.close()

    # ---- parts

    @property
    def _live(self) -> Publisher:
        assert self._publisher is not None  # noqa: S101  open comes first
        return self._publisher

    @property
    def _slowness(self) -> str:
        """What to say where each of the last commits took longer than the time between two epochs."""
        if self._slow < _SLOW_EPOCHS or self._sink.every is None:
            return ""
        return (
            f"the last {self._slow} commits took longer than the {self._sink.every.total_seconds():g} s "
            "between two epochs: maintain the table, or raise trigger.every"
        )

    def _make(self, creation: CreateTable) -> None:
        """Make a table, unless it is there.

        :raises HiddenError: this login may not.
        """
        with suppress(MissingError):
            self._catalog.load(creation.name)
            return
        if creation.role is Role.DATA and not creation.layout and self._columns:
            creation = creation.with_columns(self._columns)
        demand_makeable(creation, ResourceKind.TABLE)
        schema, spec = layout_of(creation, self._sink.target)
        self._catalog.create(creation.name, schema, spec, creation.properties)

    def _look(self, role: Role) -> tuple[ResourceFacts, Table | None]:
        return look.look(self._catalog, self._sink.names[role], self._sink.name, role)

    def _fitting(self, given: Mapping[str, SparkType]) -> Schema:
        """Return the table's schema, or what it will be, if the query's columns fit it."""
        if self._layout is None:
            table = self._look(Role.DATA)[1]
            self._layout = Layout.of(table) if table is not None else None
        if self._layout is None:
            return new_table(given, self._sink.target)
        schema, spec = self._layout.read()
        demand_fit(given, self._sink.target, schema, spec)
        return schema
