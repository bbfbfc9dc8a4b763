"""Rows that replace others: a merge of what is staged into the table, in one commit with the progress.

delta-rs reads the table's columns of the key, writes the files anew that have one of the keys, with the new
rows, and commits both. It runs on the driver: what it costs goes by the size of the table and of those files,
and not by the rows alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.places import is_local
from airflow_provider_sinks.connectors.delta.rounding import is_rounded
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.rows import DELETED
from airflow_provider_sinks.connectors.table_format.stage import StagedFile

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, WriterProperties

_NEW, _OLD = "sinks_new", "sinks_old"
_PART_BYTES = 8 * 1024 * 1024


def merge(
    table: DeltaVersion,
    staged: Sequence[StagedFile],
    files: DeltaFiles,
    key: Sequence[str],
    properties: CommitProperties,
) -> bool:
    """Replace the rows of the keys that are staged, and add those that are new; remove those that are gone.

    :param staged: of exactly the columns that are written, and perhaps of one that says which keys are gone;
        each key once.
    :param properties: of the commit.
    :returns: whether there was anything to change; where all keys that are gone never were there, there is no
        commit.
    """
    with _at_hand(staged, files) as places:
        return _merge(table, _rows(places), key, properties)


def _merge(
    table: DeltaVersion, rows: pa.RecordBatchReader, key: Sequence[str], properties: CommitProperties
) -> bool:
    names = [name for name in rows.schema.names if name != DELETED]
    columns = {_quoted(name): f"{_NEW}.{_quoted(name)}" for name in names}
    same = " AND ".join(f"{_OLD}.{_quoted(name)} = {_NEW}.{_quoted(name)}" for name in key)
    rest = {name: value for name, value in columns.items() if name not in map(_quoted, key)}
    merger = table.raw.merge(
        source=rows,
        predicate=same,
        source_alias=_NEW,
        target_alias=_OLD,
        commit_properties=properties,
        writer_properties=_writing(rows.schema),
    )
    is_there = None
    if DELETED in rows.schema.names:
        is_gone = f"{_NEW}.{_quoted(DELETED)}"
        merger, is_there = merger.when_matched_delete(is_gone), f"NOT {is_gone}"
    merger = merger.when_matched_update(rest or columns, is_there)
    done = merger.when_not_matched_insert(columns, is_there).execute()
    return bool(done["num_target_files_added"] or done["num_target_files_removed"])


def _writing(schema: pa.Schema) -> WriterProperties | None:
    """Return how the files are written: no bounds of large decimals, which delta-rs rounds inwards."""
    from deltalake import ColumnProperties, WriterProperties

    none = ColumnProperties(statistics_enabled="NONE")
    rounded = {one.name: none for one in schema if is_rounded(one.type)}
    return WriterProperties(column_properties=rounded) if rounded else None


@contextmanager
def _at_hand(staged: Sequence[StagedFile], files: DeltaFiles) -> Iterator[Sequence[str]]:
    """Give the files on this machine; those of an object store are fetched for as long as that takes.

    delta-rs asks for rows in a thread of its own runtime, and there its client of object stores cannot wait.
    """
    paths = [file.path for file in staged]
    if is_local(paths[0]):
        yield [files.place(path)[1] for path in paths]
        return
    with tempfile.TemporaryDirectory(prefix="sinks-merge-") as folder:
        yield [_fetched(files, path, Path(folder, str(number))) for number, path in enumerate(paths)]


def _fetched(files: DeltaFiles, path: str, place: Path) -> str:
    system, there = files.place(path)
    with system.open_input_file(there) as source, place.open("wb") as copy:
        while part := source.read(_PART_BYTES):
            copy.write(part)
    return str(place)


def _rows(places: Sequence[str]) -> pa.RecordBatchReader:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def batches() -> Iterator[pa.RecordBatch]:
        for place in places:
            with pq.ParquetFile(place) as source:
                yield from source.iter_batches()

    return pa.RecordBatchReader.from_batches(pq.read_schema(places[0]), batches())


def _quoted(name: str) -> str:
    """Return a name as SQL has it, whatever characters it has."""
    return '"{}"'.format(name.replace('"', '""'))
