"""Columns over rows, built once and laid over the rows of each epoch.

Each expression that is built in Python is some calls of the JVM, and more when Python forgets it. A view of
plain text takes over four hundred, which were a twentieth of a second of each epoch; the columns of a table
with four of them took two hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class LaidColumns:
    """What is added to rows, one column behind the other, and what is taken of them then.

    They belong to the JVM in which they were built.

    :param added: by name; each may use those before it.
    :param taken: of the rows and of what was added.
    :param finally_taken: of those, where not all of them are needed; empty: all are.
    """

    added: tuple[tuple[str, Column], ...]
    taken: tuple[Column, ...]
    finally_taken: tuple[Column, ...] = ()

    def added_to(self, rows: DataFrame) -> DataFrame:
        """Return rows with what is added."""
        for name, column in self.added:
            rows = rows.withColumn(name, column)
        return rows

    def over(self, rows: DataFrame) -> DataFrame:
        """Return what is taken."""
        taken = self.added_to(rows).select(*self.taken)
        return taken.select(*self.finally_taken) if self.finally_taken else taken


class KeptColumns:
    """The columns of one projection, built again only where what decides about them has changed."""

    def __init__(self) -> None:
        self._about: tuple[object, ...] | None = None
        self._columns: LaidColumns | None = None

    def over(self, rows: DataFrame, build: Callable[[], LaidColumns], *about: object) -> DataFrame:
        """Lay them over rows.

        :param build: builds them for such rows.
        :param about: what decides about them beside names and types of the rows' columns; compared.
        """
        found = (rows.schema, *about)
        if self._columns is None or found != self._about:
            self._columns, self._about = build(), found
        return self._columns.over(rows)
