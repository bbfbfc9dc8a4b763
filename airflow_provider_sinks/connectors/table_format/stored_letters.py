"""Reads the dead letters of a table: the newest, all, or one. Changes nothing.

A row of such a table has no place of its own: files are rewritten. A letter's place is that of its record in
the source; of several of one record it is the newest that is shown.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.spelling import letter_of_row

Takes = Callable[[Letter], bool]


class TableLetters(ABC):
    """The letters of one table. Use it as a context manager."""

    @abstractmethod
    def _rows(self, place: tuple[int, int] | None) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a source partition and offset, or all; none where there is no table.

        :raises UnavailableError: they could not be read to the end.
        """

    def all(self) -> Iterator[Letter]:
        """Yield every letter."""
        return map(_letter, self._rows(None))

    def newest(self, limit: int, takes: Takes) -> list[Letter]:
        """Return the newest letters that are wanted, the newest first."""
        return heapq.nlargest(limit, filter(takes, self.all()), key=lambda letter: letter.at_ms)

    def at(self, place: tuple[int, int]) -> Letter | None:
        """Return the newest letter of a place in the source, if there is one."""
        return max(map(_letter, self._rows(place)), key=lambda letter: letter.at_ms, default=None)

    def close(self) -> None:  # noqa: B027  not every storage has connections
        """Drop the connections, where there are any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _letter(row: Mapping[str, Any]) -> Letter:
    return letter_of_row((row["source_partition"] or 0, row["source_offset"] or 0), row)
