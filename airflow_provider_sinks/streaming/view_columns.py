"""Columns over records, built once and laid over the records of each epoch.

Each expression that is built in Python is some calls of the JVM. A view of plain text takes over four
hundred, and they took a twentieth of a second of each epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class ViewColumns:
    """What is added to records, one column behind the other, and what is taken of them then.

    They belong to the JVM in which they were built.

    :param added: by name; each may use those before it.
    :param taken: the columns of the view.
    """

    added: tuple[tuple[str, Column], ...]
    taken: tuple[Column, ...]

    def added_to(self, records: DataFrame) -> DataFrame:
        """Return records with what is added."""
        for name, column in self.added:
            records = records.withColumn(name, column)
        return records

    def over(self, records: DataFrame) -> DataFrame:
        """Return the view."""
        return self.added_to(records).select(*self.taken)
