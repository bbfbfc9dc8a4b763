"""What a start of a sink asks for, read from its spec."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import CreateTopic, Role, progress_topic
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import offsets


@dataclass(frozen=True)
class StartRequest:
    """What a start asks for.

    :param owner: this Airflow; a sink belongs to one.
    :param source: the name of the source topic.
    :param start: where a new sink begins in the source, in the words of the spec.
    :param stateful: the plan keeps state in Spark's checkpoint.
    :param progress_is_shared: other sinks may have records in the progress topic.
    :param witness: what Airflow remembers, or None.
    :param generation: the newest generation that this very start has seen before, such as at its first look.
    """

    sink: str
    owner: str
    source: str
    data: CreateTopic
    progress: CreateTopic
    dead_letter: CreateTopic | None = None
    start: str = "earliest"
    stateful: bool = False
    progress_is_shared: bool = False
    witness: Witness | None = None
    generation: int | None = None

    def topics(self) -> dict[Role, CreateTopic]:
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
    target, start = spec.target.kafka, spec.source.kafka.start
    return StartRequest(
        sink=spec.name,
        owner=owner,
        source=spec.source.kafka.topic,
        data=CreateTopic(
            Role.DATA, target.topic, target.partitions, target.replication_factor, dict(target.config)
        ),
        progress=progress_topic(spec.progress_topic, spec.progress.replication_factor),
        dead_letter=_dead_letter(spec),
        start=start if isinstance(start, str) else f"offsets {offsets(start)}",
        stateful=spec.plan.stateful,
        progress_is_shared=spec.progress.topic is not None,
        witness=witness,
        generation=generation,
    )


def _dead_letter(spec: SinkSpec) -> CreateTopic | None:
    part = spec.dead_letter
    if part is None:
        return None
    return CreateTopic(
        Role.DEAD_LETTER, part.topic, part.partitions, part.replication_factor, dict(part.config)
    )
