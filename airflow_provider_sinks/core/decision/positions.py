"""Where a sink goes on: its generation, the offset of each source partition, and what is gone before it."""

from __future__ import annotations

from airflow_provider_sinks.core.decision.classify import ResourceState, classify_resource
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.progress.checkpoint import newest_epoch_is_whole
from airflow_provider_sinks.core.progress.history import EARLIEST, History
from airflow_provider_sinks.core.progress.witness import Witness


def next_generation(observation: Observation, request: StartRequest) -> int:
    """Return the generation after the newest that anybody remembers."""
    return 1 + max(observation.known.generation, request.witness.generation if request.witness else 0)


def resume_positions(
    observation: Observation, request: StartRequest, *, without_checkpoint: bool = False
) -> dict[int, int]:
    """Return where each source partition goes on: where records, Spark's commit log or the witness prove it.

    Records cannot prove that the newest epoch ended on a writer that had no row in it; the other two can.

    :param without_checkpoint: whether the newest epoch is taken for whole where nobody looked into the log.
    """
    source, history, witness = observation.source, observation.known, request.witness
    checkpoint = observation.checkpoint
    is_whole = newest_epoch_is_whole(checkpoint, history) if checkpoint else without_checkpoint
    positions = history.resume_positions(source.partitions, is_whole) if history else {}
    if witness is None or not _is_of(witness, source, history, request):
        return positions
    return {partition: max(at, witness.offsets.get(partition, at)) for partition, at in positions.items()}


def _is_of(witness: Witness, source: ResourceFacts, history: History, request: StartRequest) -> bool:
    """Return whether the offsets of a witness are about these records and this source."""
    ours = (request.owner, history.generation)
    known = classify_resource(source, witness.identities.source)
    return (witness.owner, witness.generation) == ours and known in (
        ResourceState.PRESENT,
        ResourceState.GREW,
    )


def removed_records(observation: Observation, request: StartRequest) -> dict[int, tuple[int, int]]:
    """Return, by source partition, the range of offsets [position, first offset) that is gone unread.

    Without Spark's checkpoint, as in Airflow, the newest epoch is taken for whole: the job looks again.
    """
    low = observation.source.low
    return {
        partition: (position, low[partition])
        for partition, position in resume_positions(observation, request, without_checkpoint=True).items()
        if EARLIEST != position < low.get(partition, 0)
    }
