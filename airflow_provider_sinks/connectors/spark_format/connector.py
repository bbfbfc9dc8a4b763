"""The target of one sink that Spark's own writer writes; :mod:`.followed_progress` says what it promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, Run
from airflow_provider_sinks.connectors.plain import NoWriters, PlainConnector
from airflow_provider_sinks.connectors.spark_format.followed_progress import FollowedProgress
from airflow_provider_sinks.connectors.spark_format.outputs import Output
from airflow_provider_sinks.connectors.spark_format.progress_folder import ProgressFolder
from airflow_provider_sinks.core.decision.facts import Creation, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.spark_format.spec import SparkSink

_TIMEOUT = timedelta(hours=1)


class SparkFormatConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what.

    :param sink: the sink.
    :param output: where its rows go.
    :param folder: where its progress lies.
    :param options: all that Spark's writer is given; they may hold a password.
    """

    def __init__(
        self, sink: SparkSink, output: Output, folder: ProgressFolder, options: Mapping[str, str]
    ) -> None:
        self._sink = sink
        self._target = sink.target.spark
        self._output = output
        self._folder = folder
        self._options = options
        self._progress = FollowedProgress(sink, output, folder)

    @property
    def service(self) -> str:
        """Where the rows go, and how."""
        return f"{self._sink.output} by format {self._target.format}"

    def capabilities(self) -> Capabilities:
        """Return that Spark commits."""
        return Capabilities(CommitsOn.ENGINE)

    # ---- columns

    def schema(self) -> Mapping[str, str]:
        """Return the types of a table's columns."""
        return self._output.columns()

    def expect(self, output: DataFrame) -> None:
        """See that Spark has the format, and that it takes such columns."""
        from airflow_provider_sinks.connectors.spark_format.encoding import demand_columns, demand_writable
        from airflow_provider_sinks.connectors.spark_format.writing import demand_installed

        demand_installed(output.sparkSession, self._target.kind, self._options.get("driver"))
        demand_writable(output, self._target.kind)
        demand_columns(output, self._sink.output, self._output.columns())

    def project(self, output: DataFrame) -> DataFrame:
        """Return the rows as they are, as long as all of them parsed."""
        from airflow_provider_sinks.connectors.spark_format.encoding import checked_rows

        return checked_rows(output)

    # ---- looking

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the output, and read the newest file of the progress."""
        data, reason = self._output.facts(with_size=True), ""
        history: History | None = None
        try:
            newest = self._progress.newest()
            data = self._progress.judged(data, newest)
            history = self._progress.history(newest, data)
        except UnavailableError as error:
            newest, reason = None, error.detail or error.primary
        return Observation(
            source=source,
            data=data,
            progress=self._progress.place(newest, reason),
            dead_letter=None,
            history=history,
            history_reason=reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Look for the mark of the output, and for the id of the progress."""
        place = self._progress.place(self._progress.newest())
        return {Role.DATA: self._output.facts(), Role.PROGRESS: place}

    def progress(self) -> History:
        """Return what is known to be written."""
        return self._progress.history(self._progress.newest(), self._output.facts())

    # ---- a start

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force, once: who was before writes no record any more, but may still write rows."""
        del writers, looked
        return self._progress.take(run.id)

    def ensure(self, creation: Creation) -> None:
        """Make the folder of the rows; that of the progress comes with its first file."""
        if creation.role is Role.DATA:
            self._output.ensure()
        else:
            self._progress.begin()

    def announce(self, record: ProgressRecord) -> None:
        """Write a record of the driver, unless that is done."""
        self._progress.announce(record)

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when another run has written."""
        self._progress.demand_in_force()

    def factory(self) -> NoWriters:
        """Return nothing that could write: Spark does."""
        return NoWriters()

    # ---- an epoch

    def write_frame(self, rows: DataFrame, record: ProgressRecord) -> int:
        """Say what is begun, write the rows, say how many there are."""
        batch = self._progress.begin_epoch(record)
        number = self._written(rows, batch)
        self._progress.end_epoch(record, batch, number)
        return number

    # ---- a reset

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty or remove the folder of the rows, or remove that of the progress.

        Rows and progress are two folders: who is in force is asked right before, and may change right behind.
        """
        if step.facts.name == self._folder.folder:
            self._folder.remove()
            return
        if self._progress.newest() is not None:  # a drop may have removed it already
            self._progress.demand_in_force()
        if isinstance(step, EmptyOutput):
            self._output.empty(step.facts.id)
        else:
            self._output.delete(step.facts.id)

    def health_check(self) -> Health:
        """Return whether the progress can be read."""
        try:
            self._progress.newest()
        except SinkError as error:
            return Health(False, error.detail or error.primary)
        return Health(True)

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open; nothing here ends one."""
        return _TIMEOUT

    # ---- parts

    def _written(self, rows: DataFrame, batch: int) -> int:
        from airflow_provider_sinks.connectors.spark_format import writing
        from airflow_provider_sinks.connectors.spark_format.encoding import unparsed_record

        target = self._target
        try:
            if target.kind.is_files and target.path is not None:
                return writing.write_files(rows, target.kind, target.path, self._options, batch)
            return writing.write_rows(rows, target.kind, target.path, self._options)
        except Exception as error:
            unparsed = unparsed_record(error, self._sink.name, self._sink.source_topic)
            if unparsed is None:
                raise
            raise unparsed from error
