"""The rows of the open transaction, kept where the broker may yet refuse one that nobody could know.

A row whose time the broker refuses ends the transaction, and names no row. Where the limits of the topic are
hidden, the broker is asked about single rows, in transactions that are aborted; then all rows are written
anew, and those that it refuses are set aside. Nobody sees anything of it but the last transaction.

librdkafka counts what was refused, and the broker does not. So what is sent next may be out of order for the
broker; that transaction is aborted too, and librdkafka begins to count anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.epoch_writer import WriteResult
from airflow_provider_sinks.connectors.kafka.columns import KEY, TOMBSTONE
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_times import HiddenLimitsError, RowTimes
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.errors import UnavailableError

_KEPT_BYTES_MAX = 256 * 1024 * 1024
"""As much as a long range has at most before it is committed in a step."""
_NOTHING = WriteResult(0, 0, 0)
_TRIES = 4


@dataclass(frozen=True)
class Ways:
    """How a writer writes.

    :param all: hands a batch over, and sets aside what is known not to be taken.
    :param good: returns the rows of a batch that nothing is known to be wrong with.
    :param plain: hands rows over as they are.
    :param rest: hands over what was held back until the last row.
    :param anew: forgets what was held back.
    """

    all: Callable[[pa.RecordBatch], WriteResult]
    good: Callable[[pa.RecordBatch], pa.RecordBatch]
    plain: Callable[[pa.RecordBatch], WriteResult]
    rest: Callable[[], None]
    anew: Callable[[], None]


class KeptRows:
    """Batches, and what became of them. No copies, but Arrow's buffers stay until the commit.

    :param transaction: of the writer.
    :param ways: how it writes.
    :param has_dead_letters: whether a row that is refused has somewhere to go.
    """

    def __init__(
        self,
        transaction: Transaction,
        limits: RowLimits,
        times: RowTimes,
        ways: Ways,
        *,
        has_dead_letters: bool,
    ) -> None:
        self._transaction = transaction
        self._limits = limits
        self._times = times
        self._ways = ways
        self._has_dead_letters = has_dead_letters
        self.forget()

    def forget(self) -> None:
        """Begin anew behind a commit."""
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._written = _NOTHING
        self._lacks_some = False
        self._times.go_on()
        self._limits.keys.forget()

    def write(self, rows: pa.RecordBatch) -> WriteResult:
        """Write a batch; return what changes by it, also of what was written before."""
        refused = None
        written = _NOTHING
        try:
            written = self._ways.all(rows)
        except HiddenLimitsError as error:
            refused = error
        self._keep(rows)
        if refused is not None:
            return self._write_anew(refused)
        self._written += written
        return written

    def refused_late(self) -> int:
        """Return how many rows were set aside since they were written, once all others have arrived.

        :raises RejectedRowError: one was refused, and not all rows are kept.
        """
        before = self._written.rows
        refused = _refusal_of(self._ways.rest)
        while refused is not None or self._batches:
            if refused is not None:
                self._write_anew(refused)
            refused = _refusal_of(self._demand_arrived)
            if refused is None:
                break
        return before - self._written.rows

    def _keep(self, rows: pa.RecordBatch) -> None:
        """Keep a batch; one that came while the limits could be read is not, and is remembered as lacking."""
        if not self._has_dead_letters:
            return
        if not self._times.are_hidden:
            self._lacks_some = True
            return
        self._bytes += rows.nbytes
        self._batches.append(rows)
        if self._bytes > _KEPT_BYTES_MAX:
            self._batches.clear()

    def _write_anew(self, refused: HiddenLimitsError) -> WriteResult:
        """Write all rows anew, without those whose times the broker refuses; return what that changes.

        Each time that it refuses one more it is asked again, and refuses a nearer one, so it ends.
        """
        before = self._written
        self._learn(refused)
        for _ in range(_TRIES):
            self._transaction.begin()
            self._ways.anew()
            try:
                self._written = sum(map(self._ways.all, self._batches), _NOTHING)
                self._demand_arrived()
            except HiddenLimitsError as again:
                self._learn(again)
            except (
                UnavailableError
            ):  # librdkafka has noticed before all rows were handed over, or counts anew
                self._transaction.restart()
            else:
                return self._written - before
        raise _unsettled()

    def _demand_arrived(self) -> None:
        """Wait until all rows have arrived.

        :raises HiddenLimitsError: the broker has refused one for its time.
        :raises UnavailableError: they did not arrive in time, or one did not for another reason.
        """
        self._ways.rest()
        if not self._transaction.flush():
            raise _unsettled()
        self._limits.demand_delivered()
        failure = self._limits.first_failure
        if failure is not None:
            raise self._transaction.translated(KafkaException(failure), "flush")

    def _learn(self, refused: HiddenLimitsError) -> None:
        """Give up what is open, and find out which times the broker refuses.

        :raises UnavailableError: what is open has rows that were not kept, and giving it up would lose them.
        """
        if self._lacks_some:
            raise _hidden_since()
        if not self._batches or self._bytes > _KEPT_BYTES_MAX:
            raise refused
        self._transaction.restart()
        if not self._times.learn([self._ways.good(rows) for rows in self._batches], self._is_taken):
            raise refused

    def _is_taken(self, row: pa.RecordBatch) -> bool:
        """Ask the broker whether it takes the time of a row.

        :raises RejectedRowError: it does not take the row for another reason: it has no key.
        """
        for _ in range(_TRIES):
            self._transaction.begin()
            self._ways.plain(_alone(row))
            is_known, failure = self._transaction.flush(), self._limits.first_failure
            self._transaction.restart()
            if failure is not None and failure.code() == KafkaError.INVALID_RECORD and _lacks_key(row):
                raise self._limits.keys.hidden()
            if is_known and (failure is None or failure.code() == KafkaError.INVALID_TIMESTAMP):
                return failure is None
        raise _unsettled()


def _refusal_of(act: Callable[[], None]) -> HiddenLimitsError | None:
    """Act, and return a refusal instead of raising it: what is done about it is no consequence of it."""
    try:
        act()
    except HiddenLimitsError as refused:
        return refused
    return None


def _alone(row: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row without the tombstone behind it: of two refused messages none says why."""
    return row.drop_columns([TOMBSTONE]) if TOMBSTONE in row.schema.names else row


def _lacks_key(row: pa.RecordBatch) -> bool:
    return bool(row.column(KEY).null_count)


def _hidden_since() -> UnavailableError:
    return UnavailableError(
        "the limits for timestamps of rows can no longer be read",
        "They could when the rows of this transaction began to come, so these rows were not kept.",
        "The task is repeated, with all rows kept; nothing of it is visible.",
    )


def _unsettled() -> UnavailableError:
    return UnavailableError(
        "a broker does not say whether it takes rows with these times",
        f"It was asked {_TRIES} times.",
        "The task is repeated; nothing of it is visible.",
    )
