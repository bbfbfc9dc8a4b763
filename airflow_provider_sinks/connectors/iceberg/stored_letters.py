"""Reads the dead letters of a table: the newest, all, or one. Changes nothing.

A row of Iceberg has no place of its own: files are rewritten. A letter's place is that of its record in the
source; of several of one record it is the newest that is shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.catalog_errors import HiddenError, MissingError, asking
from airflow_provider_sinks.connectors.iceberg.creation import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.core.dead_letters.letter import Letter, letter_of_row
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

Takes = Callable[[Letter], bool]


class IcebergLetters:
    """The letters of one table. Use it as a context manager.

    :param options: of the target's catalog; hold secrets.
    :param table: with its namespace; one that is not there has no letters.
    """

    def __init__(self, options: IcebergOptions, table: str) -> None:
        self._options = options
        self._table = table
        self._catalog = TableCatalog(options)

    def all(self) -> Iterator[Letter]:
        """Yield every letter."""
        from pyiceberg.expressions import AlwaysTrue

        return self._read(AlwaysTrue())

    def newest(self, limit: int, takes: Takes) -> list[Letter]:
        """Return the newest letters that are wanted, the newest first."""
        return heapq.nlargest(limit, filter(takes, self.all()), key=lambda letter: letter.at_ms)

    def at(self, place: tuple[int, int]) -> Letter | None:
        """Return the newest letter of a place in the source, if there is one."""
        here = f"source_partition = {place[0]:d} and source_offset = {place[1]:d}"
        return max(self._read(here), key=lambda letter: letter.at_ms, default=None)

    def close(self) -> None:
        """Drop the connections."""
        self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, wanted: BooleanExpression | str) -> Iterator[Letter]:
        """Yield letters, a batch of a file at a time.

        :raises UnavailableError: they could not be read to the end.
        """
        try:
            with asking(self._options):
                table = self._catalog.load(self._table)
                there = [name for name in DEAD_LETTER_COLUMNS if name in table.schema().column_names]
                scan = table.scan(row_filter=wanted, selected_fields=tuple(there))
                for batch in scan.to_arrow_batch_reader():
                    for row in batch.to_pylist():
                        yield _letter(row)
        except MissingError:
            return
        except HiddenError as error:
            raise UnavailableError(f'table "{self._table}" may not be read', str(error)) from error


def _letter(row: Mapping[str, Any]) -> Letter:
    return letter_of_row((row["source_partition"] or 0, row["source_offset"] or 0), row)
