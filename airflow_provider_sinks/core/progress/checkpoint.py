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


class CheckpointSeen(enum.Enum):
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


CHECKPOINTS: dict[tuple[CheckpointSeen, bool], CheckpointUse] = {
    # seen, stateful
    (CheckpointSeen.FITS, False): CheckpointUse.CONTINUE,
    (CheckpointSeen.FITS, True): CheckpointUse.CONTINUE,
    (CheckpointSeen.BEHIND, False): CheckpointUse.RENEW,
    (CheckpointSeen.BEHIND, True): CheckpointUse.STATE_LOST,
    (CheckpointSeen.OTHER, False): CheckpointUse.RENEW,
    (CheckpointSeen.OTHER, True): CheckpointUse.STATE_LOST,
    (CheckpointSeen.AHEAD, False): CheckpointUse.PROGRESS_ROLLED_BACK,
    (CheckpointSeen.AHEAD, True): CheckpointUse.PROGRESS_ROLLED_BACK,
}
"""The decision about Spark's checkpoint, for a sink that has records."""


def checkpoint_seen(facts: CheckpointFacts, history: History) -> CheckpointSeen:
    """Compare a checkpoint with the records of the newest generation."""
    if facts.path != history.checkpoint:
        return CheckpointSeen.OTHER
    recorded = history.batch(facts.path)
    if recorded < facts.committed:
        return CheckpointSeen.AHEAD
    return CheckpointSeen.BEHIND if recorded > facts.planned else CheckpointSeen.FITS


def judge_checkpoint(facts: CheckpointFacts, history: History, stateful: bool) -> CheckpointUse:
    """Return what to do with a checkpoint, for a sink that has records."""
    return CHECKPOINTS[checkpoint_seen(facts, history), stateful]


def newest_epoch_is_whole(facts: CheckpointFacts, history: History) -> bool:
    """Return whether Spark's commit log proves that the newest recorded epoch ended on every writer."""
    newest = history.newest
    return (
        newest is not None
        and newest.checkpoint == facts.path == history.checkpoint
        and 0 <= newest.batch == facts.committed
    )
