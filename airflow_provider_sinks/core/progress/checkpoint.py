"""Spark's checkpoint, and whether it fits the progress records.

Spark writes ``offsets/<batch>`` before a batch runs and ``commits/<batch>`` after it; our records are
committed between the two. So with r = newest recorded batch of this checkpoint, c = newest in ``commits/``
and t = newest in ``offsets/``::

    c <= r <= t    as it must be; a crash leaves c = r - 1
    r < c          Spark went on after the newest record: progress was rolled back
    r > t          the checkpoint was rolled back or deleted
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from airflow_provider_sinks.core.progress.history import History


@dataclass(frozen=True)
class CheckpointFacts:
    """What was found in a checkpoint folder.

    :param path: the folder that this start would use.
    :param committed: newest batch in ``commits/``, or -1.
    :param planned: newest batch in ``offsets/``, or -1.
    """

    path: str
    committed: int = -1
    planned: int = -1


class CheckpointState(enum.Enum):
    """How a checkpoint and the records relate."""

    FITS = "fits"
    BEHIND = "behind the records"
    AHEAD = "ahead of the records"
    OTHER = "not the recorded one"


class CheckpointUse(enum.Enum):
    """What to do with a checkpoint."""

    CONTINUE = "go on with it"
    RENEW = "resume from the record with a new checkpoint"
    PROGRESS_ROLLED_BACK = "refuse: progress was rolled back"
    STATE_LOST = "refuse: the state of the plan is lost"


CHECKPOINTS: dict[tuple[CheckpointState, bool], CheckpointUse] = {
    # seen, stateful
    (CheckpointState.FITS, False): CheckpointUse.CONTINUE,
    (CheckpointState.FITS, True): CheckpointUse.CONTINUE,
    (CheckpointState.BEHIND, False): CheckpointUse.RENEW,
    (CheckpointState.BEHIND, True): CheckpointUse.STATE_LOST,
    (CheckpointState.OTHER, False): CheckpointUse.RENEW,
    (CheckpointState.OTHER, True): CheckpointUse.STATE_LOST,
    (CheckpointState.AHEAD, False): CheckpointUse.PROGRESS_ROLLED_BACK,
    (CheckpointState.AHEAD, True): CheckpointUse.PROGRESS_ROLLED_BACK,
}
"""The decision about Spark's checkpoint, for a sink that has records."""


def classify_checkpoint(facts: CheckpointFacts, history: History) -> CheckpointState:
    """Compare a checkpoint with the records of the newest generation."""
    if facts.path != history.checkpoint:
        return CheckpointState.OTHER
    recorded = history.batch(facts.path)
    if recorded < facts.committed:
        return CheckpointState.AHEAD
    return CheckpointState.BEHIND if recorded > facts.planned else CheckpointState.FITS


def judge_checkpoint(facts: CheckpointFacts, history: History, stateful: bool) -> CheckpointUse:
    """Return what to do with a checkpoint, for a sink that has records."""
    return CHECKPOINTS[classify_checkpoint(facts, history), stateful]


def newest_epoch_is_whole(facts: CheckpointFacts, history: History) -> bool:
    """Return whether Spark's commit log proves that the newest recorded epoch ended on every writer."""
    newest = history.newest
    return (
        newest is not None
        and newest.checkpoint == facts.path == history.checkpoint
        and 0 <= newest.batch == facts.committed
    )
