"""The driver's record with which a run, or a new generation, comes into force. Pure.

It names every writer that was ever used and those about to be, before a task uses one: so the next start
knows whom to fence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers


def own_writers(spec: SinkSpec, source: ResourceFacts) -> tuple[WriterId, ...]:
    """Return the writers that a spec asks for, without the driver."""
    if spec.writer_mode is Writers.SINGLE:
        return (SINGLE_WRITER,)
    return tuple(map(partition_writer, range(source.partitions)))


def every_writer(spec: SinkSpec, observation: Observation) -> tuple[WriterId, ...]:
    """Return every writer that may have something open: the driver, those of the spec and of the records."""
    others = {*own_writers(spec, observation.source), *observation.known.writers_ever} - {DRIVER}
    return (DRIVER, *sorted(others))


@dataclass(frozen=True)
class Beginning:
    """Where a run, or a new generation, goes on.

    :param positions: the offset at which each source partition goes on.
    :param epoch: the newest that is whole; 0 in a new generation.
    :param checkpoint: Spark's; empty where the next start makes one of its own.
    :param batch: the newest batch in that checkpoint that is recorded; -1 for none.
    :param own: rows and dead letters that the driver's records count for itself.
    :param totals: the same of each writer in this generation.
    :param rows_before: rows of earlier generations that the data output keeps.
    :param dead_before: dead letters of earlier generations that their output keeps.
    """

    generation: int
    positions: Mapping[int, int]
    epoch: int = 0
    checkpoint: str = ""
    batch: int = -1
    own: tuple[int, int] = (0, 0)
    totals: Mapping[WriterId, tuple[int, int]] = field(default_factory=dict)
    rows_before: int = 0
    dead_before: int = 0


def announcement(
    spec: SinkSpec, owner: str, run: str, observation: Observation, beginning: Beginning
) -> ProgressRecord:
    """Return the record that announces a run.

    :param owner: this Airflow.
    :param run: the uuid of the run.
    :param observation: what is there now, read behind the fence.
    :raises UnavailableError: an output is not there.
    """
    rows, dead = beginning.own
    return ProgressRecord(
        generation=beginning.generation,
        owner=owner,
        run=run,
        epoch=beginning.epoch,
        from_=beginning.positions,
        to=beginning.positions,
        identities=observation.identities(),
        checkpoint=beginning.checkpoint,
        batch=beginning.batch,
        rows_total=rows,
        dead_total=dead,
        spec_digest=spec.digest,
        writers=tuple(sorted(every_writer(spec, observation))),
        writer_mode=spec.writer_mode.value,
        spec=spec.to_json(),
        totals=beginning.totals,
        rows_before=beginning.rows_before,
        dead_before=beginning.dead_before,
        leader_epochs=observation.source.leader_epochs_at(beginning.positions),
    )
