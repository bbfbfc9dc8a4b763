"""The target of one sink whose tables are files and snapshots: writers stage files, the driver publishes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar, Generic

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run, Say
from airflow_provider_sinks.connectors.epoch_writer import Token, WriterFactory
from airflow_provider_sinks.connectors.laid_columns import KeptColumns
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.connectors.table_format.altering import TableEvolution
from airflow_provider_sinks.connectors.table_format.creation import CreateTable, KeepProgress
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.format import Table, TableFormat
from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    Role,
    demand_makeable,
)
from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError, Problem, SinkError
from airflow_provider_sinks.core.evolution import SchemaDiff, Step
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

_TIMEOUT = timedelta(hours=1)
_SLOW_EPOCHS = 5


class TableConnector(PlainConnector, ABC, Generic[Table]):
    """The part of :class:`.base.SinkConnector` that formats of tables share.

    :param sink: its tables.
    :param tables: their format.
    :param say: told what a person should know although nothing stops.
    """

    not_made_hint: ClassVar[str]
    """What to do where a table may not be made."""

    def __init__(self, sink: SinkTables, tables: TableFormat[Table], say: Say) -> None:
        self._sink = sink
        self._tables = tables
        self._say = say
        self._publisher: Publisher[Table] | None = None
        self._has_taken = False
        self._columns: Mapping[str, SparkType] = {}
        self._kept = KeptColumns()
        self._layout: Any = None
        """Of the data table, once it was looked at; it is forgotten where a table is made or reset."""
        self._metrics: dict[str, MetricValue] = {}
        self._slow = 0

    @abstractmethod
    def _create(self, creation: CreateTable) -> None:
        """Make a table that is not there.

        :raises HiddenError: this login may not.
        :raises ConfigurationError: there is no such table.
        """

    @abstractmethod
    def _difference(self, given: Mapping[str, SparkType]) -> SchemaDiff:
        """Compare a query's columns with those of the data table as it is now.

        :raises UnavailableError: it could not be read.
        """

    @abstractmethod
    def _snapshots(self) -> int | None:
        """Return how many snapshots the data table has; nothing where it is not there."""

    def capabilities(self) -> Capabilities:
        """Return that the driver publishes."""
        return Capabilities(CommitsOn.DRIVER)

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open: nothing ends one but whoever removes orphan files."""
        return _TIMEOUT

    def health_check(self) -> Health:
        """Load the table; say so where commits take longer than the time between them."""
        try:
            count = self._snapshots()
        except SinkError as error:
            return Health(False, error.detail or error.primary)
        if count is not None:
            self._metrics["snapshots"] = count
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
        self._publisher = Publisher(self._sink, self._tables, run, self._say)
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
            raise JobFailedError(f"{creation} is of another target")
        try:
            self._make(creation)
        except HiddenError as error:
            title = creation.role.called(ResourceKind.TABLE)
            problem = Problem(creation.name, str(error))
            raise ConfigurationError(f"{title} cannot be made", [problem], self.not_made_hint) from error
        self._layout = None

    def announce(self, record: ProgressRecord) -> None:
        """Commit the driver's record, which takes tables that were made a moment ago.

        The data table is looked at anew: until now others could alter it.
        """
        self._live.announce(record)
        self._has_taken, self._layout = True, None

    def as_schema_evolvable(self) -> TableEvolution:
        """Return what alters the data table."""
        return TableEvolution(self._difference, self._alter)

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink.

        :raises RefusedError: an older one has it again.
        """
        if self._has_taken:
            self._live.demand_in_force()

    def factory(self) -> WriterFactory:
        """Return what makes writers under the announced run."""
        return self._live.factory(list(self._columns))

    def sweep(self) -> None:
        """Remove what older runs staged.

        :raises FencedError: a newer run is in force.
        """
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

    # ---- parts

    def _alter(self, steps: Sequence[Step], record: ProgressRecord) -> None:
        """Alter the data table, and announce the run."""
        self._live.announce(record, steps)
        self._has_taken, self._layout = True, None

    @property
    def _live(self) -> Publisher[Table]:
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
            self._tables.load(creation.name)
            return
        if creation.role is Role.DATA and not creation.layout and self._columns:
            creation = creation.with_columns(self._columns)
        demand_makeable(creation, ResourceKind.TABLE)
        self._create(creation)
