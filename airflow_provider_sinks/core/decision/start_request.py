"""What a start of a sink asks for, read from its spec."""

from __future__ import annotations

from airflow_provider_sinks.core.decision.facts import CreateTopic, Role, Wanted, progress_topic
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import offsets


def wanted(
    spec: SinkSpec, owner: str, witness: Witness | None = None, generation: int | None = None
) -> Wanted:
    """Return what a start asks for.

    :param owner: this Airflow.
    :param witness: what Airflow remembers of the sink.
    :param generation: the newest generation that this very start has seen before.
    """
    target, start = spec.target.kafka, spec.source.kafka.start
    return Wanted(
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
