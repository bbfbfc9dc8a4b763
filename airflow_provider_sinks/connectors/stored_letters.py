"""The dead letters of a sink, wherever its target keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.connectors.source import SourceKind
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.kinds import SOURCE, load
from airflow_provider_sinks.core.spec.sink import SinkSpec


class StoredLetters(Protocol):
    """What is asked of them. Nothing is changed by it."""

    def all(self) -> Iterator[Letter]:
        """Yield every letter that is committed; also those of other sinks, where they share a place.

        :raises UnavailableError: they could not be read to the end.
        """

    def newest(self, limit: int, takes: Callable[[Letter], bool]) -> list[Letter]:
        """Return the newest that are wanted, the newest first."""

    def at(self, place: tuple[int, int]) -> Letter | None:
        """Return the one of a place, if one is there."""


class LetterCopies(Protocol):
    """The copies of letters that stand in a table, where a replay reads them."""

    def all(self) -> Iterator[Letter]:
        """Yield every copy, the first one first; none where no replay ever was.

        :raises UnavailableError: they could not be read to the end.
        """

    def add(self, letters: Callable[[], Iterable[Letter]]) -> None:
        """Copy letters, but for those of which there is a copy; of several callers the last one wins.

        :param letters: asked once nobody else can copy any more.
        :raises FencedError: somebody else does it too, and began later; nothing is copied twice.
        :raises SinkError: some could not be copied; those that were stay, and are not copied again.
        """


@runtime_checkable
class KeepsLetters(Protocol):
    """The part of a kind of target that can show its dead letters; :mod:`.kind` has the rest."""

    def letters(
        self, spec: SinkSpec, connections: ResolvedConnections
    ) -> AbstractContextManager[StoredLetters]:
        """Return the letters of a sink that sets something aside."""


def stored_letters(spec: SinkSpec, connections: ResolvedConnections) -> AbstractContextManager[StoredLetters]:
    """Return the dead letters of a sink.

    :raises ConfigurationError: it keeps none, or its target cannot show them.
    """
    found = kind(spec)
    if spec.dead_letter is None:
        problem = Problem("dead_letter", "is not set: such records stop the sink")
        raise ConfigurationError(f'sink "{spec.name}" sets nothing aside', [problem])
    if not isinstance(found, KeepsLetters):
        problem = Problem("target", f"{spec.target_kind} cannot show them")
        raise ConfigurationError(f'dead letters of sink "{spec.name}" cannot be read', [problem])
    return found.letters(spec, connections)


def letter_copies(spec: SinkSpec, connections: ResolvedConnections) -> AbstractContextManager[LetterCopies]:
    """Return the copies that a replay reads.

    :param spec: of the replay, whose source they are.
    :raises ConfigurationError: the connection of its source is not there, or of another type.
    """
    found: SourceKind = load(SOURCE)
    return found.letter_copies(spec, connections)
