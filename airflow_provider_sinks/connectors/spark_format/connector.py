"""The target of one sink that Spark's own writer writes: progress is told behind the rows, never with them.

Where Spark itself remembers a batch (:meth:`.outputs.Output.newest_batch`), an epoch that was begun and whose
batch is there counts as committed, whether the record behind it was written or not. Where it remembers
nothing, such an epoch is written again. That is all there is to Spark's guarantee; nothing is added to it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, Run
from airflow_provider_sinks.connectors.plain import NoWriters, PlainConnector
from airflow_provider_sinks.connectors.spark_format.outputs import Output
from airflow_provider_sinks.connectors.spark_format.progress_folder import Progress, ProgressFolder
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    Unfit,
)
from airflow_provider_sinks.core.errors import (
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    utc_now,
)

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
        self._run = ""
        self._number = 0
        self._lock = threading.RLock()  # the guard asks while an epoch is written

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
            newest = self._folder.newest()[1]
            data = self._judged(data, newest)
            history = self._history(newest, data)
        except UnavailableError as error:
            newest, reason = None, error.detail or error.primary
        return Observation(
            source=source,
            data=data,
            progress=self._place(newest, reason),
            dead_letter=None,
            history=history,
            history_reason=reason,
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Look for the mark of the output, and for the id of the progress."""
        return {Role.DATA: self._output.facts(), Role.PROGRESS: self._place(self._folder.newest()[1])}

    def progress(self) -> History:
        """Return what is known to be written."""
        return self._history(self._folder.newest()[1], self._output.facts())

    # ---- a start

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force, once: who was before writes no record any more, but may still write rows."""
        del writers, looked
        if self._run == run.id and self._number:
            self.demand_in_force()
            return True
        self._run = run.id
        taken = False
        while not taken:
            number, newest = self._folder.newest()
            if newest is None:
                return True  # nobody has begun, and of two that begin now one takes the first file
            taken = self._append(number + 1, self._settled(newest))
        return False

    def ensure(self, creation: Creation) -> None:
        """Make the folder of the rows; that of the progress comes with its first file."""
        if creation.role is Role.DATA:
            self._output.ensure()
        elif self._folder.newest()[1] is None and not self._append(1, Progress(run=self._run)):
            raise self._overtaken("It has begun the progress a moment ago.")

    def announce(self, record: ProgressRecord) -> None:
        """Write a record of the driver, unless that is done.

        :raises UnavailableError: an epoch was ended behind the look that the start was decided on.
        """
        with self._lock:
            newest = self._follow()
            before = newest.records.get(DRIVER)
            if before == record:
                return
            settled = self._settled(newest)
            if settled.records != newest.records:
                raise UnavailableError(
                    f'an overtaken driver of sink "{self._sink.name}" has ended its batch meanwhile',
                    f"The log of Spark's file sink is at {self._next_batch() - 1}.",
                    "Nothing was written; the next start takes that batch for written.",
                )
            begun = settled.begun if settled.begun and settled.begun.generation == record.generation else None
            batch = settled.batch if _goes_on(before, record) else self._next_batch()
            records = {**settled.records, DRIVER: record}
            self._write(replace(settled, records=records, begun=begun, batch=batch))

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when another run has written."""
        with self._lock:
            self._follow()

    def factory(self) -> NoWriters:
        """Return nothing that could write: Spark does."""
        return NoWriters()

    # ---- an epoch

    def write_frame(self, rows: DataFrame, record: ProgressRecord) -> int:
        """Say what is begun, write the rows, say how many there are."""
        with self._lock:
            begun = replace(self._follow(), begun=record)
            self._demand_free(begun.batch)
            self._write(begun)
        number = self._written(rows, begun.batch)
        whole = replace(record, rows=number, rows_total=record.rows_total + number, at=utc_now())
        with self._lock:
            newest = self._follow()
            done = {**newest.records, SINGLE_WRITER: whole}
            self._write(replace(newest, records=done, begun=None, batch=begun.batch + 1))
        return number

    # ---- a reset

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty or remove the folder of the rows, or remove that of the progress."""
        if step.facts.name == self._folder.folder:
            self._folder.remove()
        elif isinstance(step, EmptyOutput):
            self._output.empty(step.facts.id)
        else:
            self._output.delete(step.facts.id)

    def health_check(self) -> Health:
        """Return whether the progress can be read."""
        try:
            self._folder.newest()
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
            unparsed = unparsed_record(error, self._sink.name, self._sink.source.kafka.topic)
            if unparsed is None:
                raise
            raise unparsed from error

    def _demand_free(self, batch: int) -> None:
        """Stop where somebody else changes the folder: Spark drops what has a number that is taken.

        :raises RefusedError: batches that were written are not in Spark's log any more.
        """
        if not self._target.kind.is_files or batch == (free := self._next_batch()):
            return
        if free < batch:
            raise RefusedError(
                f'the folder of sink "{self._sink.name}" went back while the sink ran: {self._sink.output}',
                *_gone(self._sink.name, batch, free),
            )
        raise JobFailedError(
            f'somebody else writes where sink "{self._sink.name}" does: {self._sink.output}',
            f"The sink's next batch has number {batch}; the log of Spark's file sink is at {free - 1}.",
            "Find out who does, and give one of the two another folder; a retry goes on behind it.",
        )

    def _judged(self, data: ResourceFacts, progress: Progress | None) -> ResourceFacts:
        """Say so where Spark's log does not list any more what the sink has written to this very folder."""
        driver = progress.records.get(DRIVER) if progress else None
        if not (self._target.kind.is_files and progress and driver) or data.unfit:
            return data
        if data.existence is not Existence.PRESENT or data.id != driver.identities.data.id:
            return data
        if (free := self._next_batch()) >= progress.batch:
            return data
        unfit = Unfit("is older than the sink's progress", *_gone(self._sink.name, progress.batch, free))
        return replace(data, unfit=unfit)

    def _next_batch(self) -> int:
        """Return the number behind those that Spark remembers."""
        newest = self._output.newest_batch()
        return 0 if newest is None else newest + 1

    def _history(self, progress: Progress | None, data: ResourceFacts) -> History:
        """Return the records, with the epoch that was begun where Spark remembers its batch."""
        if progress is None:
            return NO_HISTORY
        if progress.begun is None or data.existence is not Existence.PRESENT:
            return History(dict(progress.records))
        return History(dict(self._settled(progress).records))

    def _settled(self, progress: Progress) -> Progress:
        """Return it with the epoch that was begun among the records, once Spark remembers its batch.

        Until then it stays begun: the driver that was at it may still live, and write it behind this look.
        Numbers never go back here: where Spark's log did, rows are gone, and nothing goes on behind that.
        """
        records, begun = dict(progress.records), progress.begun
        batch = max(self._next_batch(), progress.batch)
        if begun is not None and batch > progress.batch:
            records[SINGLE_WRITER] = begun
        kept = begun if batch == progress.batch else None
        return replace(progress, run=self._run or progress.run, records=records, begun=kept, batch=batch)

    def _place(self, progress: Progress | None, reason: str = "") -> ResourceFacts:
        facts = ResourceFacts(
            self._folder.folder, Existence.UNKNOWN, "checkpoint", reason=reason, kind=ResourceKind.FOLDER
        )
        if reason:
            return facts
        if progress is None:
            return replace(facts, existence=Existence.MISSING)
        return replace(facts, existence=Existence.PRESENT, id=progress.place)

    def _write(self, progress: Progress) -> None:
        if not self._append(self._number + 1, progress):
            self._follow()
            raise UnavailableError(f'the progress of sink "{self._sink.name}" moved while it was written')

    def _append(self, number: int, progress: Progress) -> bool:
        if not self._folder.append(number, progress):
            return False
        self._number = number
        return True

    def _follow(self) -> Progress:
        """Return the newest progress, which is of this run.

        :raises FencedError: it is another's, or somebody has removed it.
        :raises JobFailedError: it is older than what this run has written.
        """
        number, newest = self._folder.newest()
        if newest is None:
            raise self._overtaken("Its progress is gone.")
        if number < self._number:
            raise JobFailedError(
                f'progress of sink "{self._sink.name}" went back while it ran',
                f"{self._folder.folder} is at file {number}, and this run has written {self._number}.",
                "Find out who restored it; the next start decides on what is there.",
            )
        if newest.run != self._run:
            raise self._overtaken(f"Run {newest.run} is in force; this is run {self._run}.")
        self._number = number
        return newest

    def _overtaken(self, detail: str) -> FencedError:
        return FencedError(f'a newer start of sink "{self._sink.name}" took over', detail)


def _goes_on(before: ProgressRecord | None, record: ProgressRecord) -> bool:
    """Return whether batches are counted on: not in a new generation, nor in another folder."""
    if before is None or before.generation != record.generation:
        return False
    return before.identities.data.id == record.identities.data.id


def _gone(sink: str, batch: int, free: int) -> tuple[str, str]:
    """Return what is gone from Spark's log, and what helps."""
    at = f"at {free - 1}" if free else "gone"
    seen = f"The log of Spark's file sink is {at}; the sink has written batch {batch - 1}."
    repair = f"Put the folder back as it was, or reset: airflow sinks reset {sink} --data recreate"
    return f"{seen} Its readers miss what came between.", repair
