"""Where a sink goes on: its generation, the offset of each source partition, and what is gone before it."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_sinks.core.decision.classify import ResourceState, classify_resource
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.progress.checkpoint import newest_epoch_is_whole
from airflow_provider_sinks.core.progress.history import EARLIEST, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
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


def positions_of_records(observation: Observation, request: StartRequest) -> dict[int, int] | None:
    """Return where a new generation may begin by the records alone, or nothing where they are no way on.

    They are one where rows and records are in one store, so that both may have been lost together, where
    source and data output are the recorded ones, and where the query needs no state that is gone.
    """
    recorded, known = observation.recorded, observation.known.own_positions()
    stores = (observation.data, observation.progress)
    if request.stateful or known is None or any(facts.kind is not ResourceKind.TABLE for facts in stores):
        return None
    compared = (
        classify_resource(observation.resources()[role], recorded.get(role))
        for role in (Role.SOURCE, Role.DATA)
    )
    if any(state not in (ResourceState.PRESENT, ResourceState.GREW) for state in compared):
        return None
    positions = {p: known.get(p, EARLIEST) for p in range(observation.source.partitions)}
    return from_what_is_left(positions, observation.source)


def from_what_is_left(positions: Mapping[int, int], source: ResourceFacts) -> dict[int, int]:
    """Return positions, or where the source begins now if that lies behind them."""
    return {p: at if at == EARLIEST else max(at, source.low.get(p, at)) for p, at in positions.items()}


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


def read_and_lost(observation: Observation, request: StartRequest) -> dict[int, tuple[int, int]]:
    """Return, by source partition, the range of offsets [kept, position) whose records are not those read."""
    positions = resume_positions(observation, request, without_checkpoint=True)
    kept = observation.kept
    return {p: (kept[p], at) for p, at in positions.items() if kept.get(p, at) < at}


def read_beyond_end(observation: Observation, request: StartRequest) -> dict[int, tuple[int, int]]:
    """Return, by source partition, the range of offsets [end, position) that was read and is not there.

    Nothing but a loss shortens a partition. An epoch was read to its end, whole or not: so its end counts.
    Where the log tells that it was lost from an earlier offset on, and written anew, that one is named.
    """
    ends = observation.known.epoch_ends()
    positions = resume_positions(observation, request, without_checkpoint=True)
    read = {partition: max(at, ends.get(partition, at)) for partition, at in positions.items()}
    high, kept = observation.source.high, observation.kept
    return {p: (min(high[p], kept.get(p, high[p])), at) for p, at in read.items() if at > high.get(p, at)}


def cut_partitions(observation: Observation, request: StartRequest) -> dict[int, int]:
    """Return the first offset of each source partition that was added, and whose first records are gone.

    Into a query that goes on, Spark takes a partition from its offset 0 only.
    """
    low, positions = observation.source.low, resume_positions(observation, request)
    return {p: low[p] for p, at in positions.items() if at == EARLIEST and low.get(p, 0) > 0}


def goes_on_in_source(observation: Observation, request: StartRequest) -> bool:
    """Return whether the source that is there reaches every place where the sink would go on."""
    source, recorded = observation.source, observation.recorded.get(Role.SOURCE)
    has_fewer = recorded is not None and source.partitions < recorded.partitions
    is_cut = request.stateful and bool(cut_partitions(observation, request))
    return not (has_fewer or is_cut or read_beyond_end(observation, request))
