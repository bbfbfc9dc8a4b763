"""Lists of an Iceberg table's metadata, copied without their entries."""

from __future__ import annotations

from copy import deepcopy

from airflow_provider_sinks.connectors.iceberg.shared_entries import SharedEntries


def test_a_copy_is_another_list_of_the_same_entries_also_once_something_was_added() -> None:
    first, second = object(), object()
    found = SharedEntries([first])

    copied = deepcopy(found + [second])  # noqa: RUF005  adding is what PyIceberg does
    copied.append(object())

    assert copied[0] is first
    assert copied[1] is second
    assert found == [first]
