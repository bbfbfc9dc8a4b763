"""What a target is told of the run that opens it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.dead_letters.letter import Circumstances

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec


@dataclass(frozen=True)
class Run:
    """One start of a sink's job, as its target knows it.

    :param sink: the sink's name.
    :param id: its uuid.
    :param source: the source topic, for what is set aside.
    :param spec_digest: of the spec that it runs, likewise.
    :param letters_of: the sink whose dead letters it replays; empty for a run that reads a source of its own.
    :param may_multiply: its query may make several rows of a record.
    """

    sink: str
    id: str
    source: str
    spec_digest: str = ""
    letters_of: str = ""
    may_multiply: bool = False

    @classmethod
    def of(cls, spec: SinkSpec) -> Run:
        """Return a new run of a sink. What it sets aside in a replay is about the sink's own source."""
        replay, multiplies = spec.replay, spec.shape.may_multiply
        source, letters_of = (spec.source_topic, "") if replay is None else (replay.topic, replay.sink)
        return cls(spec.name, str(uuid.uuid4()), source, spec.digest, letters_of, multiplies)

    def circumstances(self, generation: int) -> Circumstances:
        """Return where its letters come from, still without the epoch."""
        return Circumstances(
            self.letters_of or self.sink,
            self.source,
            generation,
            spec_digest=self.spec_digest,
            is_replay=bool(self.letters_of),
            may_multiply=self.may_multiply,
        )
