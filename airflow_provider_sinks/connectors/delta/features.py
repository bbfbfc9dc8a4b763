"""What a Delta table demands of who writes it, and is not done here: each is a reason to refuse it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.core.decision.facts import Unfit

_KNOWN = frozenset(
    {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants", "timestampNtz"}
)
"""Features that are written, or of which :func:`unfit` looks whether the table really uses them."""
_WRITER_OF_FEATURES, _WRITER_MAX, _READER_MAX = 7, 4, 1
_CONSTRAINT = "delta.constraints."
_RETENTION = "delta.setTransactionRetentionDuration"
_CHARACTERS = "__CHAR_VARCHAR_TYPE_STRING"
_NOT_WRITTEN = "Rows that are written without it would be wrong for whoever reads the table."


def unfit(table: DeltaVersion, *, replaces_rows: bool) -> Unfit | None:
    """Return why a table cannot be written as it is.

    :param replaces_rows: the sink removes files with the rows that it replaces.
    """
    return next(_reasons(table, replaces_rows), None)


def _reasons(table: DeltaVersion, replaces_rows: bool) -> Iterator[Unfit]:
    yield from _of_protocol(table)
    for field in table.fields:
        yield from _of_column(str(field["name"]), field.get("metadata") or {})
    yield from _of_properties(table.properties, replaces_rows)


def _of_protocol(table: DeltaVersion) -> Iterator[Unfit]:
    protocol = table.raw.protocol()
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    if unknown := sorted(str(feature) for feature in features - _KNOWN):
        yield Unfit(
            f"has the feature {unknown[0]}",
            _NOT_WRITTEN,
            f"ALTER TABLE ... DROP FEATURE {unknown[0]}, or name another table.",
        )
    if writer < _WRITER_OF_FEATURES and (writer > _WRITER_MAX or reader > _READER_MAX):
        yield Unfit(
            f"is of reader version {reader} and writer version {writer}",
            "They stand for column mapping or identity columns, which are not written.",
            "Copy it into a table without them.",
        )


def _of_column(name: str, metadata: Mapping[str, Any]) -> Iterator[Unfit]:
    if "delta.generationExpression" in metadata:
        yield Unfit(
            f"generates column {name}",
            "Nobody computes it here, and a wrong value would be read as a right one.",
            f"Give {name} in the query, and make the table without GENERATED ALWAYS AS.",
        )
    if any(key.startswith("delta.identity.") for key in metadata):
        yield Unfit(f"numbers rows in column {name}", _NOT_WRITTEN, "Copy it into a table without IDENTITY.")
    if "delta.invariants" in metadata:
        yield Unfit(
            f"has an invariant on column {name}",
            "It is not checked for the files that are written.",
            "Check it in the query, with a WHERE, and copy the table without it.",
        )
    if _CHARACTERS in metadata:
        yield Unfit(
            f"has column {name} as {metadata[_CHARACTERS]}",
            "Its length is not checked for the files that are written.",
            f"Copy the table with {name} as STRING.",
        )
    if any(key.startswith("delta.columnMapping.") for key in metadata):
        yield Unfit(f"maps column {name} to another name", _NOT_WRITTEN, "Copy it into a table without that.")


def _of_properties(properties: Mapping[str, str], replaces_rows: bool) -> Iterator[Unfit]:
    for key, value in sorted(properties.items()):
        if key.startswith(_CONSTRAINT):
            name = key.removeprefix(_CONSTRAINT)
            yield Unfit(
                f"has the constraint {name}: CHECK ({value})",
                "It is not checked for the files that are written.",
                f"Check it in the query, with a WHERE, and ALTER TABLE ... DROP CONSTRAINT {name}.",
            )
    if _RETENTION in properties:
        yield Unfit(
            f"forgets transactions after {properties[_RETENTION]}",
            "They hold the progress: it would be lost where the sink rests for longer.",
            f"ALTER TABLE ... UNSET TBLPROPERTIES ('{_RETENTION}')",
        )
    if replaces_rows and properties.get("delta.appendOnly", "").lower() == "true":
        yield Unfit(
            "takes rows only, and none that replace others",
            "delta.appendOnly is set.",
            "ALTER TABLE ... SET TBLPROPERTIES ('delta.appendOnly' = 'false'), or mode: append.",
        )
