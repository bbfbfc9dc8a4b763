"""Reads the dead letters of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.catalog_errors import asking
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.letters import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.table_format.stored_letters import TableLetters
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


class IcebergLetters(TableLetters):
    """See :class:`.stored_letters.TableLetters`.

    :param options: of the target's catalog; hold secrets.
    :param table: with its namespace; one that is not there has no letters.
    """

    def __init__(self, options: IcebergOptions, table: str) -> None:
        self._options = options
        self._table = table
        self._catalog = TableCatalog(options)

    def close(self) -> None:
        """Drop the connections."""
        self._catalog.close()

    def _rows(self, place: tuple[int, int] | None) -> Iterator[Mapping[str, Any]]:
        """Yield rows, a batch of a file at a time."""
        try:
            with asking(self._options):
                table = self._catalog.load(self._table)
                there = [name for name in DEAD_LETTER_COLUMNS if name in table.schema().column_names]
                scan = table.scan(row_filter=_wanted(place), selected_fields=tuple(there))
                for batch in scan.to_arrow_batch_reader():
                    yield from batch.to_pylist()
        except MissingError:
            return
        except HiddenError as error:
            raise UnavailableError(f'table "{self._table}" may not be read', str(error)) from error


def _wanted(place: tuple[int, int] | None) -> BooleanExpression | str:
    from pyiceberg.expressions import AlwaysTrue

    if place is None:
        return AlwaysTrue()
    return f"source_partition = {place[0]:d} and source_offset = {place[1]:d}"
