"""The one interface that every target implements, in two objects because they live in two places.

The one on executors stands in :mod:`.epoch_writer`, what only some targets have in :mod:`.schema_parts`, and
what a target is told of its run in :mod:`.run`.

::

    driver     SinkConnector   observe -> open -> ensure -> announce -> factory
                               -> (each epoch: project, tasks, commit_epoch) ... -> close
    executor   EpochWriter     prepare -> open -> begin_epoch -> write_batch* -> flush -> pre_commit
                               -> commit_epoch (or rollback_epoch) ... -> close

The runtime (:mod:`airflow_provider_sinks.streaming`) decides *what* a writer may write: which rows are new,
whether the input was complete, whether the range fits what is committed. A connector only knows *how* its
target takes rows together with the progress record, so that both become visible or neither does.

Why this order is exactly once. ``open`` of the connector ends every older run and every writer of it, and
reads the progress only then: nothing that is not in it can follow. ``open`` of a writer does the same for its
own id. A record is written by compare-and-set on the record before it, so of two that hold the same id one
fails. Where the driver commits, nothing of an epoch is visible before ``commit_epoch``, which takes the
tokens of successful tasks alone, and each of them once.

*Idempotent* means: what progress covers is not done again. *Outcome unknown* is an answer of its own
(:class:`InDoubtError`): the runtime opens anew and asks the target what holds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_provider_sinks.connectors.epoch_writer import Token, WriterFactory
from airflow_provider_sinks.connectors.run import Run
from airflow_provider_sinks.connectors.schema_parts import SchemaEvolvable, SchemaRegistryAware
from airflow_provider_sinks.core.decision.facts import Creation, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.rows import RecordColumns

__all__ = [
    "Capabilities",
    "CommitsOn",
    "Health",
    "HeldUp",
    "MetricValue",
    "Run",
    "Say",
    "SchemaEvolvable",
    "SchemaRegistryAware",
    "SinkConnector",
]

MetricValue: TypeAlias = int | float | str
HeldUp: TypeAlias = Callable[[str], None]
"""Is told what a reading waits for, such as somebody's open transaction."""
Say: TypeAlias = Callable[[str], None]
"""Is told what a person should know although nothing stops."""


class CommitsOn(enum.StrEnum):
    """Who makes an epoch's rows visible."""

    EXECUTOR = "executor"
    """Each writer by itself, right behind its ``pre_commit``."""
    DRIVER = "driver"
    """The driver, once for all tokens of an epoch: nothing is visible before."""
    ENGINE = "engine"
    """Spark, by a writer of its own, with the guarantee that Spark gives: the target holds no record of ours.
    What is committed is told behind the rows, and how much of that a crash leaves open is Spark's to say."""


@dataclass(frozen=True)
class Capabilities:
    """What a target can give, as far as the runtime decides by it; static, without I/O.

    :param commits_on: who commits.
    :param kept_writers: how many writers a driver may keep open from one epoch to the next; each may have
        connections, threads and memory of its own.
    """

    commits_on: CommitsOn
    kept_writers: int = 16


@dataclass(frozen=True)
class Health:
    """How a target does, from the view of a running driver.

    :param is_well: whether the next commit is expected to work.
    :param detail: what is not well, for a person.
    """

    is_well: bool
    detail: str = ""


class SinkConnector(Protocol):
    """The target of one sink, on the driver; also in Airflow, except for frames and writers.

    Made by the connector's entry point, from a spec and the options of its connections. Safe for threads: the
    guard asks ``identify`` and ``demand_in_force`` while an epoch runs, and the status ``health_check``.
    What a target has nothing to say to it inherits from :class:`.plain.PlainConnector`.
    """

    @property
    def service(self) -> str:
        """Who is asked, for messages, such as ``Postgres at db:5432``. No I/O, no secrets."""

    def capabilities(self) -> Capabilities:
        """Return what the target can give. No I/O."""

    def expect(self, output: DataFrame) -> None:
        """Hear what columns the query gives, and compare them with what is there. Once, before the start.

        :param output: as for :meth:`project`; it may be a stream, and has no rows.
        :raises ConfigurationError: when they do not fit the target, and the start may not make them fit.
        :raises UnavailableError: the target could not be seen.
        """

    def project(self, output: DataFrame) -> DataFrame:
        """Encode rows as the target takes them, in Spark's expressions: nothing per row in Python.

        Called for each epoch, and once before the start to find what does not fit; must not run a job.

        :param output: the query's columns, with the source columns of :mod:`.rows` behind them. A row that
            has an error has nothing else but the source record's own key and value.
        :returns: :data:`.rows.COORDINATES`, then the target's own columns, then :data:`.rows.RAW` where
            something may be set aside. Order and number of the rows stay.
        :raises ConfigurationError: when the columns do not fit the target.
        """

    def record_columns(self) -> RecordColumns | None:
        """Return the columns of a writer for a record's own key and value; ``None`` if it has none. No I/O.

        Where a sink copies whole records (:mod:`.core.spec.copies`), its tasks read them without Spark, and
        :meth:`project` is not called for an epoch.
        """

    def schema(self) -> Mapping[str, str]:
        """Return what the target takes now: types by column; empty where it takes anything. From Airflow too.

        :raises UnavailableError: it could not be seen.
        """

    def observe(self, source: ResourceFacts) -> Observation:
        """Return everything the decision is made from, except Spark's checkpoint. No side effects.

        Called before and behind the fence, by the job as by sensors and commands. Not being allowed to see
        something is an answer too.

        :param source: what was seen of the source.
        :raises AuthenticationError: the target refused the credentials.
        :raises UnavailableError: the target did not answer.
        """

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Return which outputs and which progress place these are right now; cheap enough for each epoch."""

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Fence every older run and every writer of it. Called after a look that was not refused.

        Behind it no other holder can commit; the progress that counts is observed afterwards, and given here
        again until its records name nobody who is not fenced. Nobody is fenced twice.

        :param writers: those of the coming run.
        :param looked: what was seen; its records name writers that were used before.
        :returns: whether everybody was fenced already, so that what was seen is what counts.
        :raises SinkError: something could not be fenced; nothing has changed for the sink.
        """

    def ensure(self, creation: Creation) -> None:
        """Make an output or the progress place, as the verdict says; one that is there is looked at again.

        :raises ConfigurationError: it cannot be made like this.
        :raises UnavailableError: it did not become visible.
        """

    def announce(self, record: ProgressRecord) -> None:
        """Commit a record of the driver, without rows, by the same compare-and-set as a writer.

        Called once per start, and while the sink runs for writers that were never used and for epochs
        without a row. After :class:`UnavailableError` it may be called again with the same record.

        :raises FencedError: a newer run is in force.
        :raises UnavailableError: no answer yet.
        """

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run has announced itself. Called every few seconds.

        :raises RefusedError: an older one is in force again: the target was put back.
        """

    def factory(self) -> WriterFactory:
        """Return what makes the writers of the announced run. Called once, after ``announce``."""

    def write_frame(self, rows: DataFrame, record: ProgressRecord) -> int:
        """Write an epoch by Spark's own writer, then tell the progress, and return the number of rows.

        Called where the engine commits, once for each epoch that is not recorded, and by nobody else. Behind
        an error nobody knows what of it is there; the next start writes it again unless Spark remembers it.

        :param rows: as :meth:`project` made them.
        :param record: that of the epoch, still without its rows; of :data:`.SINGLE_WRITER`.
        :raises FencedError: a newer run is in force.
        :raises ConfigurationError: a record does not parse, or Spark cannot write such rows.
        """

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Make the rows of exactly these tokens visible with the record, in one atomic change.

        Called where the driver commits, once for each epoch, and again after :class:`InDoubtError` and after
        a crash. It changes something only if this run is in force and the newest epoch is the one before;
        what is committed already by the same record is well. :meth:`progress` has the record as that of
        :data:`.SINGLE_WRITER`, beside the driver's own, which says who is in force.

        :raises FencedError: another run, or another epoch, is in force.
        :raises RefusedError: the target knows of less than this run has committed: it was rolled back.
        :raises LostStageError: what a token stands for is gone.
        :raises InDoubtError: no answer.
        """

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Give up what tokens stand for. Idempotent; never undoes a commit; must not raise.

        Not called behind :class:`InDoubtError`: that commit may still come through.
        """

    def progress(self) -> History:
        """Return what is committed now. After a doubt, for sensors and commands; fences nothing.

        :raises UnavailableError: it could not be read.
        """

    def end_open(self, writers: Iterable[WriterId]) -> None:
        """End what these writers of this run left open, so that nobody waits for it. Must not raise.

        Called when nothing of the run may be committed any more.
        """

    def sweep(self) -> None:
        """Remove what older runs staged and nobody will commit. Called once behind the announcement.

        List first, and ask then who is in force: a start that stood still may be overtaken by now, and what
        it lists is of runs behind it.

        :raises FencedError: a newer run is in force; nothing was removed.
        """

    def look_closely(self, role: Role, output: ResourceFacts) -> ResourceFacts:
        """Return what was seen of an output with what must be known before it is emptied. Before a reset.

        :raises UnavailableError: that could not be seen.
        """

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return what an administrator has set for an output that is about to be made anew. Before a reset.

        :raises UnavailableError: it may not be seen.
        """

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Return the epochs whose begin the progress place still tells, for a rewind; none where it does not.

        :raises UnavailableError: it could not be read.
        """

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty or delete an output, if it is still the one that was looked at. Called behind the fence.

        Idempotent: an output that is gone is deleted. Whoever calls may have stood still behind its fence,
        until another run did the same and wrote rows: whether this run is in force is asked in the same act,
        or right before where the target has no such act.

        :raises FencedError: a newer run is in force; nothing was changed.
        :raises RefusedError: it is another one by now.
        :raises SinkError: it could not be done.
        """

    def health_check(self) -> Health:
        """Return how the target does. Called every few seconds for the status; quick, and must not raise."""

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return figures about the target for the status, such as its version; no I/O, and must not raise."""

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch of one writer may be open, as the spec and the target have it."""

    def as_schema_registry_aware(self) -> SchemaRegistryAware | None:
        """Return the part that speaks to a schema registry, where the target has one."""

    def as_schema_evolvable(self) -> SchemaEvolvable | None:
        """Return the part that adds and widens columns, where the target can."""

    def close(self) -> None:
        """Drop all clients. Idempotent; must not raise."""
