"""The commit of an epoch whose writers only staged their rows: by the driver, once for all their tokens."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, Token
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience


def commit_staged(
    target: SinkConnector, record: ProgressRecord, tokens: Sequence[Token], patience: Patience
) -> bool:
    """Commit an epoch; False when its rows have to be written again.

    A commit without an answer is made again, by the same record and tokens: what has come through after all
    is not done twice, and what its target does behind the rows is done then. The driver waits for the answer
    as for any other, within its patience. As such a commit may come through at any time, nothing that was
    staged is given up behind a doubt: the next start sweeps, behind its fence.

    :raises SinkError: it was not committed, or nobody knows.
    """
    doubts: list[InDoubtError] = []

    def commit() -> None:
        try:
            target.commit_epoch(record, tokens)
        except InDoubtError as doubt:
            doubts.append(doubt)
            say(f"epoch {record.epoch}: {doubt.primary}; it is committed again")
            raise UnavailableError(doubt.primary, doubt.detail, doubt.hint) from doubt

    try:
        patience.ask(target.service, commit)
    except SinkError as error:
        if not doubts:
            target.rollback_epoch(tokens)
        if isinstance(error, LostStageError):
            return False
        raise
    return True
