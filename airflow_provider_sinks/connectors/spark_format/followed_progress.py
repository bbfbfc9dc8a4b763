"""The progress of one sink, told behind the rows: it follows the log that Spark itself keeps of its batches.

Where Spark itself remembers a batch (:meth:`.outputs.Output.newest_batch`), an epoch that was begun and whose
batch is there counts as committed, whether the record behind it was written or not. Where it remembers
nothing, such an epoch is written again. That is all there is to Spark's guarantee; nothing is added to it.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.spark_format.outputs import Output
from airflow_provider_sinks.connectors.spark_format.progress_folder import Progress, ProgressFolder
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Unfit
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord, utc_now

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.spark_format.spec import SparkSink


class FollowedProgress:
    """What one run knows of the progress, and writes to it.

    :param sink: the sink.
    :param output: where its rows go; Spark's log is there.
    :param folder: where its progress lies.
    """

    def __init__(self, sink: SparkSink, output: Output, folder: ProgressFolder) -> None:
        self._sink = sink
        self._is_files = sink.target.spark.kind.is_files
        self._output = output
        self._folder = folder
        self._run = ""
        self._number = 0
        self._lock = threading.RLock()  # the guard asks while an epoch is written

    # ---- looking

    def newest(self) -> Progress | None:
        """Return what the newest file says, whoever wrote it.

        :raises UnavailableError: it could not be read.
        """
        return self._folder.newest()[1]

    def place(self, progress: Progress | None, reason: str = "") -> ResourceFacts:
        """Return what is seen of the folder.

        :param reason: why it could not be read.
        """
        facts = ResourceFacts(
            self._folder.folder, Existence.UNKNOWN, "checkpoint", reason=reason, kind=ResourceKind.FOLDER
        )
        if reason:
            return facts
        if progress is None:
            return replace(facts, existence=Existence.MISSING)
        return replace(facts, existence=Existence.PRESENT, id=progress.place)

    def history(self, progress: Progress | None, data: ResourceFacts) -> History:
        """Return the records, with the epoch that was begun where Spark remembers its batch."""
        if progress is None:
            return NO_HISTORY
        if progress.begun is None or data.existence is not Existence.PRESENT:
            return History(dict(progress.records))
        return History(dict(self._settled(progress).records))

    def judged(self, data: ResourceFacts, progress: Progress | None) -> ResourceFacts:
        """Say so where Spark's log does not list any more what the sink has written to this very folder."""
        driver = progress.records.get(DRIVER) if progress else None
        if not (self._is_files and progress and driver) or data.unfit:
            return data
        if data.existence is not Existence.PRESENT or data.id != driver.identities.data.id:
            return data
        if (free := self._next_batch()) >= progress.batch:
            return data
        unfit = Unfit("is older than the sink's progress", *_gone(self._sink.name, progress.batch, free))
        return replace(data, unfit=unfit)

    # ---- a start

    def take(self, run: str) -> bool:
        """Put this run in force; return whether it was, or nobody has begun."""
        if self._run == run and self._number:
            self.demand_in_force()
            return True
        self._run = run
        taken = False
        while not taken:
            number, newest = self._folder.newest()
            if newest is None:
                return True  # of two that begin now one takes the first file
            taken = self._append(number + 1, self._settled(newest))
        return False

    def begin(self) -> None:
        """Write the first file, unless there is one.

        :raises FencedError: another run has begun meanwhile.
        """
        if self.newest() is None and not self._append(1, Progress(run=self._run)):
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

    # ---- an epoch

    def begin_epoch(self, record: ProgressRecord) -> int:
        """Say what is begun; return the number that Spark is to give its batch."""
        with self._lock:
            begun = replace(self._follow(), begun=record)
            self._demand_free(begun.batch)
            self._write(begun)
        return begun.batch

    def end_epoch(self, record: ProgressRecord, batch: int, rows: int) -> None:
        """Say how many rows there are, which Spark has written as this batch."""
        whole = replace(record, rows=rows, rows_total=record.rows_total + rows, at=utc_now())
        with self._lock:
            newest = self._follow()
            done = {**newest.records, SINGLE_WRITER: whole}
            self._write(replace(newest, records=done, begun=None, batch=batch + 1))

    # ---- Spark's log

    def _next_batch(self) -> int:
        """Return the number behind those that Spark remembers."""
        newest = self._output.newest_batch()
        return 0 if newest is None else newest + 1

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

    def _demand_free(self, batch: int) -> None:
        """Stop where somebody else changes the folder: Spark drops what has a number that is taken.

        :raises RefusedError: batches that were written are not in Spark's log any more.
        """
        if not self._is_files or batch == (free := self._next_batch()):
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

    # ---- files

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
