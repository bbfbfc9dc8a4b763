"""The executor's half of the contract: a transactional writer. :mod:`.base` has the order of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from airflow_provider_sinks.core.retries import Trouble

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Token:
    """What ``pre_commit`` returns and ``commit_epoch`` of a connector takes: the only way into an epoch.

    :param writer: whose it is.
    :param name: what it stands for, in the words of the target; empty where the executor commits.
    :param rows: how many rows are behind it.
    """

    writer: WriterId
    name: str
    rows: int = 0


@dataclass(frozen=True)
class WriteResult:
    """What one ``write_batch`` took over.

    :param rows: rows for the target.
    :param dead: rows that were set aside.
    :param size_bytes: of both together, as they are handed over.
    """

    rows: int
    dead: int
    size_bytes: int

    def __add__(self, other: WriteResult) -> WriteResult:
        return WriteResult(self.rows + other.rows, self.dead + other.dead, self.size_bytes + other.size_bytes)

    def __sub__(self, other: WriteResult) -> WriteResult:
        return WriteResult(self.rows - other.rows, self.dead - other.dead, self.size_bytes - other.size_bytes)


class InDoubtError(SinkError):
    """A commit was neither confirmed nor refused. The runtime opens anew and asks the target what holds."""

    trouble = Trouble.DOUBT


class LostStageError(SinkError):
    """What a token stands for is not there any more: the epoch is written again, some times."""

    trouble = Trouble.STAGE_GONE


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

    holder_id: str
    """Changes with each commit: the driver hands the last one to the next task, and an object that holds
    another one is closed, because somebody else has committed since."""

    last: ProgressRecord | None
    """The newest record of this writer in the newest generation, as of ``open`` or of the last commit.
    Nothing where the driver commits: it alone knows."""

    def open(self) -> None:
        """Fence all other holders of this writer's id, THEN read ``last``. Called once, before the first row.

        :raises FencedError: when the newest run of the sink is not the one this writer belongs to.
        :raises UnavailableError: when that cannot be known.
        """

    def begin_epoch(self, epoch: int) -> None:
        """Arm for one epoch. Called before its first row; nothing may be visible, locked or timed yet.

        :param epoch: its number, for what is set aside.
        """

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand rows over, in order; may return before they have arrived. Called any number of times.

        :param rows: source partition, source offset and error (:mod:`.rows`), then the columns of
            :meth:`SinkConnector.project`.
        :raises RejectedRowError: for a row that the target can never take.
        """

    def flush(self) -> None:
        """Return when what was handed over has arrived; it is not visible. Called before ``pre_commit``.

        :raises RejectedRowError: for a row that the target turned out not to take.
        :raises UnavailableError: it did not arrive in time.
        """

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Hand over the progress record behind the last row, and return the token of the coming commit.

        Rows that turned out late not to be taken, and were set aside, are missing in the token's number; the
        record is written, and kept as ``last``, as :meth:`.ProgressRecord.with_set_aside` makes it.
        Called once per epoch (or step of a long one), only after the proved end of the input.
        """

    def commit_epoch(self) -> None:
        """Make rows and record visible. Called right after ``pre_commit``, where the executor commits.

        :raises InDoubtError: when the answer did not come; it may or may not have happened.
        :raises FencedError: a newer run came first; nothing is visible.
        :raises UnavailableError: a twin of the same run did, which may have failed by now: an attempt behind
            this one opens anew. Only a newer run ends the driver.
        :raises RejectedRowError: for a row that the target turned out not to take.
        """

    def rollback_epoch(self) -> None:
        """Give up what was not committed. Idempotent; never undoes a commit; must not raise."""

    def close(self) -> None:
        """Free what is held. Idempotent; must not raise."""


class WriterFactory(Protocol):
    """Makes the writers of one run on executors. Pickled into tasks, so its ``repr`` must hide secrets."""

    def prepare(self, writer: WriterId) -> EpochWriter:
        """Return a writer that connects in the background while rows are computed. Must not fence.

        Called from a task that only *expects* to be this writer: the rows decide, and a wrong guess is
        closed without ever being opened.
        """
