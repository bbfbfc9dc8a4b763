"""Whether Spark's checkpoint and the records fit each other."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.reasons.progress import look_first
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.way_on import ROLLED_BACK, WayOn
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts, CheckpointUse
from airflow_provider_sinks.core.wording import summary


def _checkpoint_ahead(evidence: Evidence) -> Text:
    facts = evidence.observation.checkpoint or CheckpointFacts("")
    return Text(
        f"progress of {evidence.sink} was rolled back",
        (
            f'Spark\'s checkpoint "{facts.path}" committed batch {facts.committed}, but the newest recorded '
            f"batch is {evidence.history.batch(facts.path)}. {evidence.title} records "
            f"{summary(evidence.history)}."
        ),
    )


def _state_lost(evidence: Evidence) -> Text:
    facts, history = evidence.observation.checkpoint or CheckpointFacts(""), evidence.history
    return Text(
        f"the state of {evidence.sink} is lost",
        (
            f'Its records belong to checkpoint "{history.checkpoint}" up to batch '
            f'{history.batch(history.checkpoint)}; found was "{facts.path}" up to batch {facts.planned}. The '
            "plan keeps state in the checkpoint, so it cannot go on from the records alone."
        ),
    )


@enum.unique
class CheckpointReason(Reason):
    """Why the checkpoint stops a sink."""

    CHECKPOINT_AHEAD = ReasonEntry(
        "Spark's checkpoint is newer than the records",
        _checkpoint_ahead,
        ways=ROLLED_BACK,
        repair=look_first,
        counts=False,
        by_checkpoint=True,
    )
    STATE_LOST = ReasonEntry(
        "the state of a stateful plan is lost", _state_lost, ways=(WayOn.START_OVER,), by_checkpoint=True
    )


CHECKPOINT_USES: dict[CheckpointUse, Ruling | Reason] = {
    CheckpointUse.CONTINUE: Ruling.GO_ON,
    CheckpointUse.RENEW: Ruling.GO_ON,
    CheckpointUse.PROGRESS_ROLLED_BACK: CheckpointReason.CHECKPOINT_AHEAD,
    CheckpointUse.STATE_LOST: CheckpointReason.STATE_LOST,
}
"""What to do about Spark's checkpoint, if there are records."""
