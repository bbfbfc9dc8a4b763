"""What a registry demands of the next schema of a subject."""

from __future__ import annotations

import enum


class Level(enum.StrEnum):
    """What a registry demands of the next schema of a subject."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_backward(self) -> bool:
        """Whether who has the new schema must read what was written by the old one."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Whether who has the old schema must read what is written by the new one."""
        return self.name.startswith(("FORWARD", "FULL"))
