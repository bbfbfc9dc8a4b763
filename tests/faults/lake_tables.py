"""Tables of files, read as any program does: the rows of a snapshot, and the progress that came with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from airflow_provider_sinks.connectors.delta.factory import STAGED
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER
from airflow_provider_sinks.connectors.table_format.errors import MissingError
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.state import State, key_of
from tests.contract.iceberg_harness import read_by_spec

_COLUMNS = ("id", "key", "bucket", "seq", "version")


@dataclass(frozen=True)
class Snapshot:
    """A table at one moment.

    :param rows: without what is wide.
    :param state: the progress of the sink; ``None`` before its first start.
    """

    rows: Sequence[dict[str, Any]] = ()
    state: State | None = None


class LakeReader(Protocol):
    """Reads the table of one sink."""

    def read(self) -> Snapshot:
        """Return what is there now; nothing where the table is still to be made."""

    def stages(self) -> list[Path]:
        """Return the files that name what was written and is not published."""

    def close(self) -> None:
        """Drop what it holds."""


class DeltaReader:
    """A Delta table in a folder, read by delta-rs.

    :param sink: the name of the sink.
    """

    def __init__(self, sink: str, target: DeltaTarget) -> None:
        self._sink = sink
        self._folder = Path(target.path)

    def read(self) -> Snapshot:
        try:
            table = DeltaTable(self._folder)
        except TableNotFoundError:
            return Snapshot()
        rows = table.to_pyarrow_table(columns=list(_COLUMNS)).to_pylist()
        return Snapshot(rows, self._state(table.version()))

    def stages(self) -> list[Path]:
        return [*self._folder.glob(f"{STAGED}/{self._sink}/*/*.json")]

    def close(self) -> None:
        pass  # it holds nothing

    def _state(self, version: int) -> State | None:
        """Return what the newest commit up to a version says; each of the sink says it, others do not."""
        for number in range(version, -1, -1):
            for line in (self._folder / "_delta_log" / f"{number:020}.json").read_text().splitlines():
                said = json.loads(line).get("commitInfo", {})
                if key_of(self._sink) in said:
                    return State.decode(said[key_of(self._sink)])
        return None


class IcebergReader:
    """An Iceberg table, read by PyIceberg, and by the format's own words where PyIceberg cannot.

    :param options: of its catalog.
    :param sink: the name of the sink.
    """

    def __init__(self, options: IcebergOptions, sink: str, target: IcebergTarget) -> None:
        self._catalog = TableCatalog(options)
        self._sink = sink
        self._name = target.table
        self._replaces = target.mode is Mode.UPSERT
        self._warehouse = Path(urlsplit(options.parameters["warehouse"]).path)

    def read(self) -> Snapshot:
        try:
            table = self._catalog.load(self._name)
        except MissingError:
            return Snapshot()
        said = table.properties.get(key_of(self._sink))
        rows = (
            read_by_spec(table)
            if self._replaces
            else table.scan(selected_fields=_COLUMNS).to_arrow().to_pylist()
        )
        return Snapshot(rows, State.decode(said) if said else None)

    def stages(self) -> list[Path]:
        namespace, _, table = self._name.rpartition(".")
        return [*self._warehouse.glob(f"{namespace}*/{table}/{FOLDER}/{self._sink}/*/*.json")]

    def close(self) -> None:
        self._catalog.close()
