"""Reads the dead letters of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_sinks.connectors.delta import log
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.letters import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.table_format.stored_letters import TableLetters
from airflow_provider_sinks.core.errors import UnavailableError


class DeltaLetters(TableLetters):
    """See :class:`.stored_letters.TableLetters`.

    :param options: of the target's storage; hold secrets.
    :param path: of the table; one that is not there has no letters.
    """

    def __init__(self, options: DeltaOptions, path: str) -> None:
        self._options = options
        self._path = path

    def _rows(self, place: tuple[int, int] | None) -> Iterator[Mapping[str, Any]]:
        """Yield rows, by delta-rs's own reader: behind Arrow's some processes ended by an abort."""
        import pyarrow as pa
        from deltalake import QueryBuilder

        try:
            with log.asking(self._options, self._path):
                table = log.load(self._options, self._path)
                names = {field["name"] for field in table.fields}
                there = ", ".join(f'"{name}"' for name in DEAD_LETTER_COLUMNS if name in names)
                query = QueryBuilder().register("letters", table.raw)
                for batch in query.execute(f"SELECT {there} FROM letters{_where(place)}"):  # noqa: S608  our names
                    yield from pa.record_batch(batch).to_pylist()
        except MissingError:
            return
        except HiddenError as error:
            raise UnavailableError(f'table "{self._path}" may not be read', str(error)) from error


def _where(place: tuple[int, int] | None) -> str:
    if place is None:
        return ""
    return f" WHERE source_partition = {place[0]:d} AND source_offset = {place[1]:d}"
