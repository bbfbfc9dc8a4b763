"""Asks a broker whether a topic takes a record without a key, where nobody may read that it is compacted.

A transaction with such a record is begun and aborted: nobody who reads committed records sees it. librdkafka
counts a record that was refused, and the broker does not. So what is sent next to its partition may be out
of order for the broker; behind a refusal a record with a key goes there first, until one arrives, and is
aborted.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.kafka.row_limits import INVALID, RowLimits
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.errors import UnavailableError

_TRIES = 4
_KEY = b"asked"
_PARTITION = 0
"""Each topic has it. One for all questions: a refusal upsets the order of its own partition alone."""


def takes_keyless(transaction: Transaction, limits: RowLimits) -> bool:
    """Return whether the data topic takes a record without a key.

    :param transaction: of the writer; none is open.
    :param limits: told what is refused.
    :raises UnavailableError: the broker does not say.
    """
    for _ in range(_TRIES):
        is_known, failure = _send(transaction, limits, None)
        if failure is not None and failure.code() in INVALID:
            _settle(transaction, limits)
            return False
        if is_known and failure is None:
            return True
    raise _unsettled(transaction)


def _settle(transaction: Transaction, limits: RowLimits) -> None:
    """Send a record with a key until one arrives."""
    for _ in range(_TRIES):
        is_known, failure = _send(transaction, limits, _KEY)
        if is_known and failure is None:
            return
    raise _unsettled(transaction)


def _send(transaction: Transaction, limits: RowLimits, key: bytes | None) -> tuple[bool, KafkaError | None]:
    """Send a record in a transaction that is aborted; return if its fate is known, and why it was refused."""
    transaction.begin()
    try:
        transaction.live.produce(transaction.run.topics.data, key=key, value=b"", partition=_PARTITION)
    except (KafkaException, BufferError) as error:
        raise transaction.translated(error, "produce") from error
    is_known = transaction.flush()
    failure = limits.first_failure
    transaction.restart()
    return is_known, failure


def _unsettled(transaction: Transaction) -> UnavailableError:
    return UnavailableError(
        f'a broker does not say whether topic "{transaction.run.topics.data}" takes records without a key',
        f"It was asked {_TRIES} times, because nobody may read the topic's settings.",
        "The task is repeated; nothing of it is visible.",
    )
