"""Metadata of a table whose long lists are not copied, entry by entry, with each commit.

PyIceberg copies all of the metadata that it has put together, each snapshot and what its summary says. With
1,000 snapshots that is most of a commit. Entries are never changed once they are made, so copies may share
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from pyiceberg.table import Table

_LISTS = ("snapshots", "snapshot_log", "metadata_log")

T = TypeVar("T")


class SharedEntries(list[T], Generic[T]):
    """A list whose deep copies have the same entries; so has what is made by adding to it."""

    def __add__(self, other: Iterable[Any]) -> SharedEntries[Any]:
        return SharedEntries([*self, *other])

    def __deepcopy__(self, _: dict[int, Any]) -> SharedEntries[T]:
        return SharedEntries(self)


def with_shared_entries(table: Table) -> Table:
    """Return a table as it was loaded; copies of its metadata share the entries of its lists."""
    found = {name: SharedEntries(getattr(table.metadata, name)) for name in _LISTS}
    table.metadata = table.metadata.model_copy(update=found)
    return table
