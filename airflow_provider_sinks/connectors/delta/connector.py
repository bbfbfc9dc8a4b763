"""The Delta target of one sink: writers stage data files, the driver publishes them in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Say
from airflow_provider_sinks.connectors.delta import log, progress
from airflow_provider_sinks.connectors.delta import observe as look
from airflow_provider_sinks.connectors.delta.fit import compare, demand_fit, layout_of, new_table
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.delta.resetting import reset_table
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.delta.tables import DeltaTables
from airflow_provider_sinks.connectors.table_format.connector import TableConnector
from airflow_provider_sinks.connectors.table_format.creation import LAYOUT, CreateTable
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.fit import written
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.evolution import Compatible, SchemaDiff, demanded
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaConnector(TableConnector[DeltaVersion]):
    """See :class:`.base.SinkConnector` for who calls what, and when.

    :param sink: its tables.
    :param target: what is written how.
    :param options: of its storage; hold secrets.
    :param say: told what a person should know although nothing stops.
    """

    not_made_hint = "Let the owner of the storage make it."

    def __init__(
        self, sink: SinkTables, target: DeltaTarget, options: DeltaOptions, say: Say = lambda _: None
    ) -> None:
        self._target = target
        self._options = options
        self._delta = DeltaTables(sink, target, options)
        super().__init__(sink, self._delta, say)

    @property
    def service(self) -> str:
        """Where the table lies, for a sentence."""
        return f"Delta table {self._sink.data}"

    # ---- columns

    def schema(self) -> Mapping[str, str]:
        """Return the types of the table's columns, or nothing where it is still to be made."""
        table = self._look(Role.DATA)[1]
        return {n: one.shown for n, one in Layout.of(table).columns.items()} if table else {}

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
        from airflow_provider_sinks.connectors.delta.encoding import ruled
        from airflow_provider_sinks.connectors.table_format.encoding import encode, types_of

        self._columns = types_of(output)
        layout, target = self._fitting(self._columns), self._target
        table = layout.columns
        names = written(list(self._columns), target.columns)
        if layout.rules:
            output, names = ruled(output, names, layout), layout.rules.filled(names)
        columns = {name: table[name] for name in names}
        texts = [name for name in layout.partitioned_by if table[name].kind == "string"]
        dates = [name for name in layout.partitioned_by if table[name].kind == "date"]
        keeps_raw = self._sink.dead_letter is not None
        return self._kept.over(
            output,
            lambda: encode(
                output, columns, target.key, keeps_raw=keeps_raw, never_empty=texts, common_years=dates
            ),
            (tuple(columns.items()), texts, dates),
        )

    # ---- looking

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the tables, and read the progress in the first."""
        data, table = self._look(Role.DATA, with_size=True)
        dead = self._look(Role.DEAD_LETTER, with_size=True)[0] if self._sink.dead_letter else None
        is_seen = data.existence is not Existence.UNKNOWN
        return Observation(
            source=source,
            data=data,
            progress=look.progress_place(data, table),
            dead_letter=dead,
            history=look.history(self._delta, table) if is_seen else None,
            history_reason=data.reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Return which tables these are now."""
        seen = {role: self._look(role) for role in self._sink.names}
        place = look.progress_place(*seen[Role.DATA])
        return {**{role: facts for role, (facts, _) in seen.items()}, Role.PROGRESS: place}

    def progress(self) -> History:
        """Read what is committed now."""
        return look.history(self._delta, self._look(Role.DATA)[1])

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return the epochs of all commits that are still in the log."""
        table = self._look(Role.DATA)[1]
        if table is None:
            return ()
        with log.asking(self._options, table.name):
            return past_epochs(progress.records_of_commits(table, self._sink.name))

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return columns and partitioning; properties that somebody has set are lost with the table."""
        try:
            return {LAYOUT: Layout.of(self._delta.load(output.name)).to_json()}
        except (MissingError, HiddenError) as error:
            primary = f'layout of table "{output.name}" could not be read'
            raise UnavailableError(primary, str(error), "Look at the table again.") from error

    # ---- what is left behind, and a reset

    def sweep(self) -> None:
        """Remove what older runs staged, and files of the progress that no table names any more."""
        super().sweep()
        for name in self._sink.names.values():
            progress.forget(self._delta.load(name), self._delta.files, self._sink.name)

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or remove it, if it is the one that was looked at."""
        reset_table(self._delta, self._options, step, self._live.demand_holds)
        self._layout = None

    # ---- parts

    def _create(self, creation: CreateTable) -> None:
        layout = layout_of(creation, self._target)
        log.create(self._options, creation.name, layout.schema, layout.partitioned_by)

    def _snapshots(self) -> int | None:
        table = self._look(Role.DATA)[1]
        return table.number + 1 if table is not None else None

    def _look(self, role: Role, *, with_size: bool = False) -> tuple[ResourceFacts, DeltaVersion | None]:
        return look.look(self._delta, self._sink.names[role], role, with_size=with_size)

    def _known_layout(self) -> Layout | None:
        """Return columns and partitioning of the data table; nothing where it is still to be made."""
        if self._layout is None:
            table = self._look(Role.DATA)[1]
            self._layout = Layout.of(table) if table is not None else None
        layout: Layout | None = self._layout
        return layout

    def _difference(self, given: Mapping[str, SparkType]) -> SchemaDiff:
        table = self._look(Role.DATA)[1]
        return Compatible() if table is None else compare(given, self._target, Layout.of(table))

    def _fitting(self, given: Mapping[str, SparkType]) -> Layout:
        """Return the table's layout, or what it will be, if the query's columns fit it."""
        layout = self._known_layout()
        if layout is None:
            return new_table(given, self._target)
        demand_fit(given, self._target, layout)
        return layout
