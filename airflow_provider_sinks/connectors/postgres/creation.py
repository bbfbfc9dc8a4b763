"""The tables that a sink makes: its data, its dead letters, its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from psycopg import sql

from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.identity import ResourceKind

PROGRESS_COLUMNS: Mapping[str, str] = {
    "sink": "text NOT NULL",
    "writer": "text NOT NULL",
    "run": "text NOT NULL",
    "holder": "text NOT NULL DEFAULT ''",
    "generation": "bigint NOT NULL DEFAULT 0",
    "epoch": "bigint NOT NULL DEFAULT 0",
    "record": "json",
    "changed_at": "timestamp with time zone NOT NULL DEFAULT now()",
}
"""``run`` and ``holder`` say who may write the row next; the rest says what was written last."""
DEAD_LETTER_COLUMNS: Mapping[str, str] = {
    "at": "timestamp with time zone NOT NULL DEFAULT now()",
    "sink": "text NOT NULL",
    "error": "text NOT NULL",
    "source_topic": "text",
    "source_partition": "integer",
    "source_offset": "bigint",
    "key": "bytea",
    "value": "bytea",
    "error_class": "text",
    "source_timestamp": "timestamp with time zone",
    "headers": "json",
    "generation": "bigint",
    "epoch": "bigint",
    "spec_digest": "text",
    "replays": "integer",
    "record_rows": "text",
}
"""The last eight are new: a table that an earlier release made has none of them, and is written without."""
FIRST_DEAD_LETTER_COLUMNS = (
    "sink",
    "error",
    "source_topic",
    "source_partition",
    "source_offset",
    "key",
    "value",
)
"""Those that every table of dead letters has."""
_UPDATED_IN_PLACE = 50


@dataclass(frozen=True)
class CreateTable:
    """An action: this table must exist.

    :param name: with its schema.
    :param columns: their types; none where only the query tells them.
    :param key: its primary key.
    :param may_be_made: whether the spec lets the sink make it.
    :param fillfactor: how full a page may be, in per cent; ``None`` is the server's default.
    """

    role: Role
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    key: Sequence[str] = ()
    fillfactor: int | None = None
    may_be_made: bool = True

    def for_source(self, source: ResourceFacts) -> CreateTable:
        """Return it as it is: nothing of it hangs on the source."""
        del source
        return self

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> CreateTable:
        """Return it with the columns that it had, where the spec names none."""
        del before
        return self if self.columns else self.with_columns(settings)

    @property
    def forbidden(self) -> Unfit | None:
        """Why the sink must not make it."""
        if self.may_be_made:
            return None
        return Unfit(
            "is not the sink's to make",
            "target.postgres.create is not set.",
            "Write create: true, or make the table as the query's columns need it.",
        )

    @property
    def hindrance(self) -> Unfit | None:
        """Why it cannot be made as it is."""
        if self.forbidden is not None:
            return self.forbidden
        if not self.columns:
            return Unfit(
                "is made by the job alone",
                "Only the job of the sink knows the columns of its query.",
                "Start the sink with the accept code that its refusal offers, or make the table.",
            )
        return None

    def with_columns(self, columns: Mapping[str, str]) -> CreateTable:
        """Return it with the columns of a query."""
        return replace(self, columns=columns)

    def statement(self) -> sql.Composed:
        """Return the SQL; a table that is there stays as it is."""
        parts: list[sql.Composable] = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in self.columns.items()
        ]
        if self.key:
            names = sql.SQL(", ").join(map(sql.Identifier, self.key))
            parts.append(sql.SQL("PRIMARY KEY ({})").format(names))
        made = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
            identifier(self.name), sql.SQL(", ").join(parts)
        )
        if self.fillfactor is None:
            return made
        return sql.SQL("{} WITH (fillfactor = {})").format(made, sql.Literal(self.fillfactor))

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        key = f", key {', '.join(self.key)}" if self.key else ""
        title = f'{self.role.called(ResourceKind.TABLE)} "{self.name}"'
        return f"create {title}: {columns or 'the columns of the query'}{key}"


def identifier(table: str) -> sql.Identifier:
    """Quote ``schema.table``."""
    return sql.Identifier(*table.split("."))


def progress_table(name: str) -> CreateTable:
    """Return how a progress table is made. Its rows change with each epoch, so pages keep room for that."""
    return CreateTable(Role.PROGRESS, name, PROGRESS_COLUMNS, ("sink", "writer"), _UPDATED_IN_PLACE)


def dead_letter_table(name: str) -> CreateTable:
    """Return how a table of dead letters is made."""
    return CreateTable(Role.DEAD_LETTER, name, DEAD_LETTER_COLUMNS)


def data_table(name: str, key: Sequence[str] = (), *, may_be_made: bool = True) -> CreateTable:
    """Return how the target is made, but for its columns, which the query tells."""
    return CreateTable(Role.DATA, name, key=key, may_be_made=may_be_made)
