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
        """Yield rows, a batch of a file at a time."""
        import pyarrow.compute as pc

        wanted = None
        if place is not None:
            partition, offset = pc.field("source_partition"), pc.field("source_offset")
            wanted = (partition == place[0]) & (offset == place[1])
        try:
            with log.asking(self._options, self._path):
                table = log.load(self._options, self._path)
                names = {field["name"] for field in table.fields}
                there = [name for name in DEAD_LETTER_COLUMNS if name in names]
                dataset = table.raw.to_pyarrow_dataset()
                for batch in dataset.to_batches(columns=there, filter=wanted):
                    yield from batch.to_pylist()
        except MissingError:
            return
        except HiddenError as error:
            raise UnavailableError(f'table "{self._path}" may not be read', str(error)) from error
