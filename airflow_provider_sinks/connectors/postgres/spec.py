"""What a sink says about a Postgres table as its target, and about the table of its dead letters."""

from __future__ import annotations

import enum
from typing import Any

from pydantic import Field, StrictBool, model_validator

from airflow_provider_sinks.core.spec.fields import Columns, ConnectionId, TableName
from airflow_provider_sinks.core.spec.parts import Part
from airflow_provider_sinks.core.spec.problems import UnfitError

PROGRESS_TABLE = "_sinks_progress"


class Mode(enum.StrEnum):
    """What a row does to the table."""

    APPEND = "append"
    UPSERT = "upsert"


class Tombstones(enum.StrEnum):
    """What a row means whose columns outside of the key are all null."""

    IGNORE = "ignore"
    DELETE = "delete"


class PostgresTarget(Part):
    """A Postgres table to write."""

    connection: ConnectionId
    table: TableName
    key: Columns = Field(default=(), description="columns of the key; rows of one key replace each other")
    mode: Mode = Mode.APPEND
    create: StrictBool = False
    columns: Columns | None = Field(default=None, description="columns to write; none: all of the query")
    tombstones: Tombstones = Tombstones.IGNORE
    progress: TableName | None = Field(
        default=None, description=f"table of the progress; none: {PROGRESS_TABLE} in the target's schema"
    )

    @model_validator(mode="after")
    def _fits(self) -> PostgresTarget:
        if self.mode is Mode.UPSERT and not self.key:
            raise UnfitError("mode upsert needs a key", "key: [column], with a unique index in the table")
        if self.mode is Mode.APPEND and self.key:
            raise UnfitError("a key is of no use in mode append", "mode: upsert, or leave key out")
        if self.tombstones is Tombstones.DELETE and self.mode is not Mode.UPSERT:
            raise UnfitError("tombstones: delete needs mode upsert", "mode: upsert, with a key")
        missing = [name for name in self.key if self.columns is not None and name not in self.columns]
        if missing:
            raise UnfitError(f"key column {missing[0]!r} is not among columns", "add it to columns")
        return self

    @property
    def progress_table(self) -> str:
        """The table of the progress, with its schema."""
        return self.progress or f"{self.table.partition('.')[0]}.{PROGRESS_TABLE}"


class PostgresDeadLetter(Part):
    """The table for what does not parse or is not taken, on the target's connection. Its name will do."""

    short_form = r"^[^/.]+\.[^/.]+$"

    table: TableName

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"table": value} if isinstance(value, str) else value
