"""The one interface that every target implements, in two objects because they live in two places.

::

    driver    SinkConnector    begin_run -> factory -> (each epoch) holders -> commit -> ... -> close
    executor  EpochWriter      prepare -> open -> begin_epoch -> write_batch* -> pre_commit -> commit_epoch
                                                                       (or rollback_epoch) ...   -> close

The runtime (:mod:`airflow_provider_sinks.streaming`) decides *what* a writer may write: which rows are new,
whether the input was complete, whether the range fits what is committed. A connector only knows *how* its
target takes rows together with the progress record, so that both become visible or neither does.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import ProgressRecord


class CommitsOn(enum.StrEnum):
    """Where the commit that makes an epoch's rows visible is called."""

    DRIVER = "driver"
    EXECUTOR = "executor"


@dataclass(frozen=True)
class Capabilities:
    """What a target can give. What a spec asks for beyond it is an error at validation.

    :param exactly_once: rows and progress become visible together.
    :param upsert: rows with a key replace each other.
    :param commits_on: who calls the commit.
    :param token_survives: whether what ``pre_commit`` returned can be committed after its process died.
    :param suggested_timeout: how long an epoch of one writer may be open.
    """

    exactly_once: bool
    upsert: bool
    commits_on: CommitsOn
    token_survives: bool
    suggested_timeout: timedelta


@dataclass(frozen=True)
class WriteResult:
    """What one ``write_batch`` took over.

    :param rows: rows for the target.
    :param dead: rows for the dead-letter target.
    :param size_bytes: keys and values of both together.
    """

    rows: int
    dead: int
    size_bytes: int

    def __add__(self, other: WriteResult) -> WriteResult:
        return WriteResult(self.rows + other.rows, self.dead + other.dead, self.size_bytes + other.size_bytes)


class InDoubtError(SinkError):
    """A commit was neither confirmed nor refused. The runtime opens anew and asks the target what holds."""

    retryable = True


class RejectedRowError(SinkError):
    """The target can never take this row as it is; trying again does not help.

    :param row: the row's index in the batch that was given; ``None`` where the target does not tell which.
    """

    def __init__(self, primary: str, detail: str = "", hint: str = "", row: int | None = None) -> None:
        super().__init__(primary, detail, hint)
        self.row = row


class EpochWriter(Protocol):
    """One transactional writer of a sink, on an executor. Kept between epochs by the task that used it.

    After any exception from any method the runtime calls ``rollback_epoch`` and ``close`` and never uses the
    object again.
    """

    token: str
    """Changes with each commit: the driver hands the last one to the next task, and an object that holds
    another one is closed, because somebody else has committed since."""

    last: ProgressRecord | None
    """The newest record of this writer in the newest generation, as of ``open`` or of the last commit."""

    def open(self) -> None:
        """Fence all other holders of this writer's id, then read ``last``. Called once, before the first row.

        :raises FencedError: when the newest start of the sink is not the one this writer belongs to.
        :raises UnavailableError: when that cannot be known.
        """

    def begin_epoch(self) -> None:
        """Arm for one epoch. Called before its first row; nothing may be visible or locked yet."""

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand rows over, in order; may return before they have arrived. Called any number of times.

        :param rows: the columns of :mod:`airflow_provider_sinks.streaming.rows`.
        :raises RejectedRowError: for a row that the target can never take.
        """

    def pre_commit(self, record: ProgressRecord) -> str:
        """Hand over the progress record after the last row, and return the token of the coming commit.

        Called once per epoch (or step of a long one), only after the whole input was seen.
        """

    def commit_epoch(self) -> None:
        """Make rows and record visible. Called after ``pre_commit``, where the commit is the executor's.

        :raises InDoubtError: when the answer did not come; it may or may not have happened.
        :raises RejectedRowError: for a row that the target turned out not to take.
        """

    def rollback_epoch(self) -> None:
        """Give up what was not committed. Idempotent; never undoes a commit; must not raise."""

    def close(self) -> None:
        """Free what is held. Idempotent; must not raise."""


class WriterFactory(Protocol):
    """Makes writers on executors. Pickled into the tasks, so its ``repr`` must hide secrets."""

    def prepare(self, writer: str) -> EpochWriter:
        """Return a writer that connects in the background while rows are computed. Must not fence.

        Called from a task that only *expects* to be this writer: the rows decide, and a wrong guess is
        closed without ever being opened.
        """
