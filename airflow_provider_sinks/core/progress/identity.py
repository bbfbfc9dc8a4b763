"""Which resource it really was: what is deleted and made again keeps its name, not its identity.

A resource is whatever a sink reads, writes, or keeps its progress in: a topic, or a table. There is one
comparison of two of them, :meth:`Identity.compared_with`; the start, the guard of a running job, preflight,
the witness and a rewind all ask it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ResourceKind(enum.Enum):
    """What a resource is, and what people call its parts."""

    TOPIC = "topic"
    TABLE = "table"
    FOLDER = "folder"

    @property
    def system(self) -> str:
        """What it is one of many in."""
        return {
            ResourceKind.TOPIC: "cluster",
            ResourceKind.TABLE: "database",
            ResourceKind.FOLDER: "storage",
        }[self]

    @property
    def entry(self) -> str:
        """What it holds many of."""
        return "record" if self is ResourceKind.TOPIC else "row"


class Sameness(enum.Enum):
    """How a resource compares with one that was seen before."""

    SAME = enum.auto()
    GREW = enum.auto()
    ELSEWHERE = enum.auto()
    RENAMED = enum.auto()
    REPLACED = enum.auto()
    SHRANK = enum.auto()

    @property
    def is_same(self) -> bool:
        """It is the one that was seen before, which may have grown."""
        return self in (Sameness.SAME, Sameness.GREW)


@dataclass(frozen=True)
class Identity:
    """One resource, told from every other that has or had its name.

    :param system: the id of the cluster, or of the database system and the database in it.
    :param name: its name there, such as ``orders`` or ``public.orders``.
    :param id: what the system gives it once and never again: a topic id, a table's oid.
    :param partitions: of a topic; 0 for what has none.
    """

    system: str
    name: str
    id: str
    partitions: int = 0

    def compared_with(self, before: Identity) -> Sameness:
        """Compare it with one that was seen before; what is told first is the larger difference.

        Fewer partitions are another topic: no system takes one away.
        """
        if self.system != before.system:
            return Sameness.ELSEWHERE
        if self.name != before.name:
            return Sameness.RENAMED
        if self.id != before.id:
            return Sameness.REPLACED
        if self.partitions < before.partitions:
            return Sameness.SHRANK
        return Sameness.GREW if self.partitions > before.partitions else Sameness.SAME

    @property
    def told_apart(self) -> str:
        """What it is told by from every other, as one text."""
        return f"{self.system}/{self.name}/{self.id}"

    def to_mapping(self) -> dict[str, Any]:
        """Write it by the names that the first release stored."""
        return {
            "cluster_id": self.system,
            "topic": self.name,
            "topic_id": self.id,
            "partitions": self.partitions,
        }

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Identity:
        """Read what :meth:`to_mapping` wrote.

        :raises TypeError: a value is of another type.
        """
        system, name, id_, partitions = (data[key] for key in _STORED)
        for text in (system, name, id_):
            if not isinstance(text, str):
                raise TypeError(f"{text!r} is not a text")
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise TypeError(f"{partitions!r} is not a number")
        return cls(system, name, id_, partitions)


_STORED = ("cluster_id", "topic", "topic_id", "partitions")


@dataclass(frozen=True)
class Identities:
    """All resources of a sink, as they were when a record was written."""

    source: Identity
    data: Identity
    progress: Identity
    dead_letter: Identity | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Write them as they are stored."""
        return {
            "source": self.source.to_mapping(),
            "data": self.data.to_mapping(),
            "progress": self.progress.to_mapping(),
            "dead_letter": self.dead_letter.to_mapping() if self.dead_letter else None,
        }

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Identities:
        """Read what :meth:`to_mapping` wrote."""
        dead_letter = data.get("dead_letter")
        return cls(
            source=Identity.from_mapping(data["source"]),
            data=Identity.from_mapping(data["data"]),
            progress=Identity.from_mapping(data["progress"]),
            dead_letter=Identity.from_mapping(dead_letter) if dead_letter is not None else None,
        )
