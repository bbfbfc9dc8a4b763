"""What a Delta table demands of who writes it, and is not done here: each is a reason to refuse it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.row_rules import RowRules, obstacle
from airflow_provider_sinks.connectors.delta.types import columns_of
from airflow_provider_sinks.core.decision.facts import Unfit

_KNOWN = frozenset(
    {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants", "timestampNtz"}
)
"""Features that are written, or of which :func:`unfit` looks whether the table really uses them."""
_WRITER_OF_FEATURES, _WRITER_MAX, _READER_MAX = 7, 4, 1
_RETENTION = "delta.setTransactionRetentionDuration"
_CHARACTERS = "__CHAR_VARCHAR_TYPE_STRING"
_ONLY_APPENDED = "Rules are checked for rows that are appended alone."
_NOT_WRITTEN = "Rows that are written without it would be wrong for whoever reads the table."


def unfit(table: DeltaVersion, *, replaces_rows: bool = False, has_rules: bool = True) -> Unfit | None:
    """Return why a table cannot be written as it is.

    :param replaces_rows: the sink removes files with the rows that it replaces.
    :param has_rules: what the table demands of a row is checked: of rows that are appended, by Spark.
    """
    return next(_reasons(table, replaces_rows, has_rules=has_rules and not replaces_rows), None)


def _reasons(table: DeltaVersion, replaces_rows: bool, *, has_rules: bool) -> Iterator[Unfit]:
    yield from _of_protocol(table)
    for field in table.fields:
        yield from _of_column(str(field["name"]), field.get("metadata") or {})
    yield from _of_rules(table, has_rules=has_rules)
    yield from _of_properties(table.properties, replaces_rows)


def _of_rules(table: DeltaVersion, *, has_rules: bool) -> Iterator[Unfit]:
    """Give the rules that are not checked: all where no Spark makes the rows, else what it must not run."""
    rules = RowRules.of(table)
    columns = [name for name, column in columns_of(table.fields).items() if column.kind]
    for name, expression in rules.expressions():
        why = obstacle(expression, columns) if has_rules else _ONLY_APPENDED
        if not why:
            continue
        remedy = "Leave the column to the query" if name.startswith("generated") else "Check it in the query"
        yield Unfit(
            f"has a rule that is not checked: {name}, {expression}",
            why[:1].upper() + why[1:].rstrip(".") + ".",
            f"{remedy}, and take it from the table, or name another table.",
        )


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
    if any(key.startswith("delta.identity.") for key in metadata):
        yield Unfit(f"numbers rows in column {name}", _NOT_WRITTEN, "Copy it into a table without IDENTITY.")
    if _CHARACTERS in metadata:
        yield Unfit(
            f"has column {name} as {metadata[_CHARACTERS]}",
            "Its length is not checked for the files that are written.",
            f"Copy the table with {name} as STRING.",
        )
    if any(key.startswith("delta.columnMapping.") for key in metadata):
        yield Unfit(f"maps column {name} to another name", _NOT_WRITTEN, "Copy it into a table without that.")


def _of_properties(properties: Mapping[str, str], replaces_rows: bool) -> Iterator[Unfit]:
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
