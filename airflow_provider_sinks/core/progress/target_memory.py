"""What a target itself remembers of a sink beside its records: the third witness, if all else is lost."""

from __future__ import annotations

from typing import Protocol


class TargetMemory(Protocol):
    """What somebody in the target remembers; its text says it behind its name: ``knows of commits by p0``."""

    @property
    def who(self) -> str:
        """Who remembers, one of them, such as ``transaction coordinator``."""

    @property
    def heading(self) -> str:
        """The same for a line of a list, such as ``coordinators``."""

    @property
    def reason(self) -> str:
        """Why it could not be asked; empty if it could."""

    @property
    def has_committed(self) -> bool:
        """It knows of committed rows."""

    @property
    def was_used(self) -> bool:
        """It knows of writers; whether they committed it does not know."""
