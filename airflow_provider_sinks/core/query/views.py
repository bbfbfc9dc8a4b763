"""The names of the views that a query reads, and of what they carry beside the user's columns."""

from __future__ import annotations

SOURCE = "source"
INTERNAL = "__sinks_"
"""How all names of ours begin; a user's must not."""

SOURCE_COLUMNS = (
    "__sinks_topic",
    "__sinks_partition",
    "__sinks_offset",
    "__sinks_error",
    "__sinks_raw_key",
    "__sinks_raw_value",
    "__sinks_raw_timestamp",
    "__sinks_raw_headers",
)
"""What the view ``source`` carries beside the user's columns; the error is NULL for a row that parsed."""

ERROR_COLUMN = "__sinks_error"

DELETED_COLUMN = "__sinks_deleted"
"""What the view ``source`` carries too where records say what became of rows: whether the row is gone."""

MATCHED_COLUMN = "__sinks_matched"
"""What each lookup view carries beside the table's columns: constantly true."""
