"""The commit of an epoch whose writers only staged their rows: by the driver, once for all their tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, Token
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience

_AGAIN_SECONDS = 4.0


def commit_staged(
    target: SinkConnector, record: ProgressRecord, tokens: Sequence[Token], patience: Patience
) -> bool:
    """Commit an epoch; False when its rows have to be written again.

    A commit without an answer is asked for in the target: its record is there, or it did not happen. Then
    the same tokens are committed again, which does nothing if the first commit comes through after all.

    :raises SinkError: it was not committed; what was staged is given up.
    """
    is_committed = False
    try:
        while not is_committed:
            is_committed = _attempt(target, record, tokens, patience)
    except LostStageError:
        return False
    finally:
        if not is_committed:
            target.rollback_epoch(tokens)
    return True


def _attempt(
    target: SinkConnector, record: ProgressRecord, tokens: Sequence[Token], patience: Patience
) -> bool:
    try:
        patience.ask(target.service, lambda: target.commit_epoch(record, tokens))
    except InDoubtError as doubt:
        say(f"epoch {record.epoch}: {doubt.primary}; asking what holds")
        if patience.ask(target.service, target.progress).current.get(SINGLE_WRITER) == record:
            return True
        time.sleep(_AGAIN_SECONDS)
        return False
    return True
