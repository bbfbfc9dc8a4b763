"""What a connection becomes for a sink: options of its type, checked, with secrets that no ``repr`` shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self


class ConnectionOptions(ABC):
    """What it takes to connect. A frozen dataclass without I/O, made by its :class:`.types.ConnectionType`.

    Travels to the driver in a private file, as :attr:`given` tells it.
    """

    conn_id: str
    """The Airflow connection that it came from."""
    conn_type: ClassVar[str]
    """Its type, as Airflow stores it."""
    undigested: ClassVar[frozenset[str]]
    """The names in :attr:`given` whose values no digest may tell: secrets, and what files hold, which may
    differ from machine to machine."""

    @property
    @abstractmethod
    def given(self) -> Mapping[str, str]:
        """All names and values, secrets too: what :meth:`.types.ConnectionType.restore` takes."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What counts, in one line for people, and no secret."""

    def usable(self) -> Self:
        """Return them as a job gets them, with the text of files: no other machine needs the files.

        :raises ConfigurationError: a file cannot be read, or a client cannot use what is in it.
        """
        return self
