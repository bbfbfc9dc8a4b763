"""What a start of a sink asks for, read from its spec."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.core.wording import offsets


@dataclass(frozen=True)
class StartRequest:
    """What a start asks for.

    :param owner: this Airflow; a sink belongs to one.
    :param source: the name of the source topic.
    :param start: where a new sink begins in the source, in the words of the spec.
    :param stateful: the query keeps state in Spark's checkpoint.
    :param writer_mode: who writes: ``per_partition`` or ``single``.
    :param progress_is_shared: other sinks may have records in the progress topic.
    :param witness: what Airflow remembers, or None.
    :param generation: the newest generation that this very start has seen before, such as at its first look.
    :param is_replay: its progress says which dead letters were taken, whether they led to rows or not.
    :param declared: the spec itself, canonically, to be compared with the one in force; empty where it must
        be that one, as in a launch of a replay.
    """

    sink: str
    owner: str
    source: str
    data: Creation
    progress: Creation
    dead_letter: Creation | None = None
    start: str = "earliest"
    stateful: bool = False
    writer_mode: str = Writers.PER_PARTITION.value
    progress_is_shared: bool = False
    witness: Witness | None = None
    generation: int | None = None
    is_replay: bool = False
    declared: str = ""

    @property
    def saw_something_taken(self) -> bool:
        """Whether the witness knows rows or letters, whoever's it is; of a replay, ours, that it was begun.

        A replay takes letters that lead to no row, too: they come back.
        """
        witness = self.witness
        if witness is None:
            return False
        return bool(witness.rows_ever or witness.dead_ever) or (
            self.is_replay and witness.owner == self.owner and witness.generation >= 1
        )

    def creations(self) -> dict[Role, Creation]:
        """Return the topics that the sink may make, the progress topic first."""
        found = {Role.PROGRESS: self.progress, Role.DATA: self.data, Role.DEAD_LETTER: self.dead_letter}
        return {role: topic for role, topic in found.items() if topic}


def start_request(
    spec: SinkSpec, owner: str, witness: Witness | None = None, generation: int | None = None
) -> StartRequest:
    """Return what a start asks for.

    :param owner: this Airflow.
    :param witness: what Airflow remembers of the sink.
    :param generation: the newest generation that this very start has seen before.
    """
    start, creations = spec.source.kafka.start, spec.creations()
    return StartRequest(
        sink=spec.name,
        owner=owner,
        source=spec.source_topic,
        data=creations[Role.DATA],
        progress=creations[Role.PROGRESS],
        dead_letter=creations.get(Role.DEAD_LETTER),
        start=start if isinstance(start, str) else f"offsets {offsets(start)}",
        stateful=spec.shape.stateful,
        writer_mode=spec.writer_mode.value,
        progress_is_shared=spec.progress_is_shared,
        witness=witness,
        generation=generation,
        is_replay=spec.replay is not None,
        declared=spec.to_json() if spec.replay is None else "",
    )
