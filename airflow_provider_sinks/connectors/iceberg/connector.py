"""The Iceberg target of one sink: writers stage data files, the driver publishes them in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Say
from airflow_provider_sinks.connectors.iceberg import observe as look
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.fit import compare, demand_fit, layout_of, new_table
from airflow_provider_sinks.connectors.iceberg.layout import Layout
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.progress import records_of_snapshots
from airflow_provider_sinks.connectors.iceberg.resetting import reset_table
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.tables import IcebergTables
from airflow_provider_sinks.connectors.iceberg.types import columns_of
from airflow_provider_sinks.connectors.table_format.connector import TableConnector
from airflow_provider_sinks.connectors.table_format.creation import LAYOUT, CreateTable
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.fit import written
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.evolution import Compatible, SchemaDiff, demanded
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame


class IcebergConnector(TableConnector["Table"]):
    """See :class:`.base.SinkConnector` for who calls what, and when.

    :param sink: its tables.
    :param target: what is written how.
    :param options: of its catalog; holds secrets.
    :param say: told what a person should know although nothing stops.
    """

    not_made_hint = "Let the owner of the catalog make it."

    def __init__(
        self,
        sink: SinkTables,
        target: IcebergTarget,
        options: IcebergOptions,
        say: Say = lambda _: None,
    ) -> None:
        self._target = target
        self._catalog = TableCatalog(options)
        tables = IcebergTables(sink.name, target, self._catalog, has_deletes=sink.has_deletes)
        super().__init__(sink, tables, say)

    @property
    def service(self) -> str:
        """Which catalog this is, for a sentence."""
        return self._catalog.service

    # ---- columns

    def schema(self) -> Mapping[str, str]:
        """Return the types of the table's columns, or nothing where it is still to be made."""
        table = self._look(Role.DATA)[1]
        return {n: column.shown for n, column in columns_of(table.schema()).items()} if table else {}

    def expect(self, output: DataFrame) -> None:
        """Keep the query's columns for a table that is still to be made; compare them with one that is."""
        from airflow_provider_sinks.connectors.table_format.encoding import types_of

        self._columns = types_of(output)
        if self._known_layout() is None:
            new_table(self._columns, self._target)
        else:
            demanded(self._difference(self._columns))

    def project(self, output: DataFrame) -> DataFrame:
        """Return the columns with exactly the types of the table."""
        from airflow_provider_sinks.connectors.table_format.encoding import encode, types_of

        self._columns = types_of(output)
        table, target = columns_of(self._fitting(self._columns)), self._target
        columns = {name: table[name] for name in written(list(self._columns), target.columns)}
        keeps_raw = self._sink.dead_letter is not None
        return self._kept.over(
            output, lambda: encode(output, columns, target.key, keeps_raw=keeps_raw), tuple(columns.items())
        )

    # ---- looking

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the tables, and read the progress in the first."""
        data, table = self._look(Role.DATA)
        if table is not None and self._target.mode is Mode.UPSERT:
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

    # ---- a reset

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or take it out of its catalog, if it is the one that was looked at."""
        reset_table(self._catalog, self._sink.name, step, self._live.demand_holds)
        self._layout = None

    def close(self) -> None:
        """Drop the connections."""
        self._catalog.close()

    # ---- parts

    def _create(self, creation: CreateTable) -> None:
        schema, spec = layout_of(creation, self._target)
        self._catalog.create(creation.name, schema, spec, creation.properties)

    def _snapshots(self) -> int | None:
        table = self._look(Role.DATA)[1]
        return len(table.metadata.snapshots) if table is not None else None

    def _look(self, role: Role) -> tuple[ResourceFacts, Table | None]:
        return look.look(self._catalog, self._sink.names[role], self._sink.name, role)

    def _known_layout(self) -> Layout | None:
        """Return schema and partitioning of the data table; nothing where it is still to be made."""
        if self._layout is None:
            table = self._look(Role.DATA)[1]
            self._layout = Layout.of(table) if table is not None else None
        layout: Layout | None = self._layout
        return layout

    def _difference(self, given: Mapping[str, SparkType]) -> SchemaDiff:
        table = self._look(Role.DATA)[1]
        if table is None:
            return Compatible()
        return compare(given, self._target, table.schema(), table.spec(), table.specs().values())

    def _fitting(self, given: Mapping[str, SparkType]) -> Schema:
        """Return the table's schema, or what it will be, if the query's columns fit it."""
        layout = self._known_layout()
        if layout is None:
            return new_table(given, self._target)
        schema, spec = layout.read()
        demand_fit(given, self._target, schema, spec)
        return schema
