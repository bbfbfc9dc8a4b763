"""The commit of an epoch whose writers only staged their rows: by the driver, once for all their tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, Token
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience

_AGAIN_SECONDS = 4.0


def commit_staged(
    target: SinkConnector, record: ProgressRecord, tokens: Sequence[Token], patience: Patience
) -> bool:
    """Commit an epoch; False when its rows have to be written again.

    A commit without an answer is asked for in the target: its record is there, or it did not happen. Then
    the same tokens are committed again, which does nothing if the first commit comes through after all. As it
    may do so at any time, nothing that was staged is given up behind a doubt: the next start sweeps, behind
    its fence.

    :raises SinkError: it was not committed, or nobody knows.
    """
    is_in_doubt = False
    while True:
        try:
            patience.ask(target.service, lambda: target.commit_epoch(record, tokens))
        except InDoubtError as doubt:
            is_in_doubt = True
            say(f"epoch {record.epoch}: {doubt.primary}; asking what holds")
            if patience.ask(target.service, target.progress).current.get(SINGLE_WRITER) == record:
                return True
            time.sleep(_AGAIN_SECONDS)
        except SinkError as error:
            if not is_in_doubt:
                target.rollback_epoch(tokens)
            if isinstance(error, LostStageError):
                return False
            raise
        else:
            return True
