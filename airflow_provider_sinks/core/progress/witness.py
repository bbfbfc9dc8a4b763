"""The witness: an independent memory of a sink's progress, kept by Airflow beside the sink's asset.

It holds committed work only, so it may lag behind the progress topic but never runs ahead of it. A witness
that is ahead therefore proves that progress was lost or rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_sinks.core.progress.identity import Identities


@dataclass(frozen=True)
class Witness:
    """What Airflow remembers of a sink.

    :param rows: rows committed in this generation, by all writers.
    :param offsets: where each source partition goes on.
    :param dead: dead letters, as ``rows``; a witness of the release before knows of none.
    :param rows_before: rows of earlier generations that are in the data output.
    :param dead_before: dead letters of earlier generations, likewise.
    :param launch: the launch that reported it.
    :param at: when it was reported, in UTC.
    """

    generation: int
    epoch: int
    rows: int
    offsets: Mapping[int, int]
    identities: Identities
    owner: str
    launch: int
    at: str = ""
    dead: int = 0
    rows_before: int = 0
    dead_before: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """What witnesses and records are compared by; never by batch id, which restarts with a checkpoint."""
        return self.generation, self.epoch

    @property
    def rows_ever(self) -> int:
        """Rows of all generations that are in the data output: a new one begins to count anew."""
        return self.rows + self.rows_before

    @property
    def dead_ever(self) -> int:
        """Dead letters of all generations, likewise."""
        return self.dead + self.dead_before

    def to_json(self) -> str:
        """Write it as JSON with sorted keys."""
        written = {**asdict(self), "identities": self.identities.to_mapping()}
        return json.dumps(written, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Witness:
        """Read a witness as ``to_json`` wrote it."""
        return cls.from_mapping(json.loads(text))

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Witness:
        """Read a witness from parsed JSON, such as the ``witness`` of launch.json."""
        offsets = {int(partition): int(offset) for partition, offset in data["offsets"].items()}
        identities = Identities.from_mapping(data["identities"])
        return cls(**{**data, "offsets": offsets, "identities": identities})
