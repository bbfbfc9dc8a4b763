"""What tests share besides fixtures."""

from __future__ import annotations

from typing import Protocol


class TopicFactory(Protocol):
    """Makes a topic for one test: ``topic("source", partitions=4, **{"cleanup.policy": "compact"})``."""

    def __call__(self, suffix: str = "", partitions: int = 1, **config: str) -> str: ...
