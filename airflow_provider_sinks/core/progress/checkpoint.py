"""Spark's checkpoint, and whether it fits the progress records.

Spark writes ``offsets/<batch>`` before a batch runs and ``commits/<batch>`` after it; our records are
committed between the two. So with r = newest recorded batch of this checkpoint, c = newest in ``commits/``
and t = newest in ``offsets/``::

    c <= r <= t    as it must be; a crash leaves c = r - 1
    r < c          Spark went on after the newest record: progress was rolled back
    r > t          the checkpoint was rolled back or deleted

Spark hands the newest epoch over once more, as a whole, where it does not know that it ended. Only the
writers that wrote in it know what of it they have committed: other writers would write it again.
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
    OF_OTHER_WRITERS = "of other writers"


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
    (CheckpointState.OF_OTHER_WRITERS, False): CheckpointUse.RENEW,
    (CheckpointState.OF_OTHER_WRITERS, True): CheckpointUse.STATE_LOST,
    (CheckpointState.AHEAD, False): CheckpointUse.PROGRESS_ROLLED_BACK,
    (CheckpointState.AHEAD, True): CheckpointUse.PROGRESS_ROLLED_BACK,
}
"""The decision about Spark's checkpoint, for a sink that has records."""


def classify_checkpoint(facts: CheckpointFacts, history: History, writer_mode: str) -> CheckpointState:
    """Compare a checkpoint with the records of the newest generation.

    :param writer_mode: of the spec that is started.
    """
    if facts.path != history.checkpoint:
        return CheckpointState.OTHER
    recorded = history.batch(facts.path)
    if recorded < facts.committed:
        return CheckpointState.AHEAD
    if recorded > facts.planned:
        return CheckpointState.BEHIND
    is_of_others = recorded >= 0 and history.writer_mode not in ("", writer_mode)
    return CheckpointState.OF_OTHER_WRITERS if is_of_others else CheckpointState.FITS


def judge_checkpoint(
    facts: CheckpointFacts, history: History, *, stateful: bool, writer_mode: str
) -> CheckpointUse:
    """Return what to do with a checkpoint, for a sink that has records.

    :param stateful: whether the spec that is started keeps state in it.
    :param writer_mode: of that spec.
    """
    return CHECKPOINTS[classify_checkpoint(facts, history, writer_mode), stateful]


def newest_epoch_is_whole(facts: CheckpointFacts, history: History) -> bool:
    """Return whether Spark's logs prove that the newest recorded epoch ended on every writer.

    Spark plans a batch only when the one before it is committed, so a later plan proves as much.
    """
    newest = history.newest
    if newest is None or newest.batch < 0 or not newest.checkpoint == facts.path == history.checkpoint:
        return False
    return newest.batch == facts.committed or newest.batch < facts.planned
