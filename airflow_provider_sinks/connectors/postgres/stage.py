"""The temporary table between a writer and its target: for upserts, for casts, and to find bad rows.

It takes what the target may refuse: lengths, precisions and constraints are left out. One statement then
moves its rows into the target, sorted by key, so that two writers lock the rows of a table in one order. If a
row is the cause that the statement fails, they are moved in parts, and each part is halved until the bad one
stands alone. Parts and halves are moved in the order of their rows, so the newest row of a key wins among the
good ones too.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from psycopg import sql

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.letter_rows import LetterRows
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection, StatementError
from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.factory import TablePlan

_STAGE = "sinks_stage_"
_BAD = "sinks_bad"
_INDEX = "sinks_stage_number"
_PART = 4096
"""How many staged rows one statement moves that looks for bad ones."""
_NUMBER = "__sinks_number"
_KEY = "__sinks_key_"
_RAW_KINDS = {
    columns.RAW_KEY: "bytea",
    columns.RAW_VALUE: "bytea",
    columns.RAW_TIMESTAMP: "bigint",
    columns.RAW_HEADERS: "text",
}

_BISECT = """
DO {quote}
DECLARE
    sinks_lows bigint[] := ARRAY[{low}]; sinks_highs bigint[] := ARRAY[{high}];
    sinks_low bigint; sinks_high bigint; sinks_middle bigint; sinks_left int; sinks_why text;
    sinks_state text; sinks_is_of_row boolean;
BEGIN
    LOOP
        sinks_left := cardinality(sinks_lows);
        EXIT WHEN sinks_left = 0;
        sinks_low := sinks_lows[sinks_left]; sinks_high := sinks_highs[sinks_left];
        sinks_lows := sinks_lows[1:sinks_left - 1]; sinks_highs := sinks_highs[1:sinks_left - 1];
        BEGIN
            {move};
        EXCEPTION WHEN {of_rows} THEN
            IF sinks_high - sinks_low = 1 THEN
                GET STACKED DIAGNOSTICS sinks_why = MESSAGE_TEXT, sinks_state = RETURNED_SQLSTATE;
                sinks_is_of_row := true;
                IF sinks_state IN ('42601', 'XX000') THEN
                    BEGIN
                        PERFORM {casts} FROM pg_temp.{stage} WHERE {number} = sinks_low;
                        sinks_is_of_row := false;
                    EXCEPTION WHEN syntax_error OR internal_error THEN
                    END;
                END IF;
                IF NOT sinks_is_of_row THEN
                    RAISE;
                END IF;
                INSERT INTO pg_temp.{bad} VALUES (sinks_low, sinks_why);
            ELSE
                sinks_middle := (sinks_low + sinks_high) / 2;
                sinks_lows := sinks_lows || ARRAY[sinks_middle, sinks_low];
                sinks_highs := sinks_highs || ARRAY[sinks_high, sinks_middle];
            END IF;
        END;
    END LOOP;
END {quote}"""
_OF_ROWS = (
    "data_exception OR integrity_constraint_violation OR program_limit_exceeded OR plpgsql_error"
    " OR with_check_option_violation OR cardinality_violation"
)
_OF_CASTS = " OR syntax_error OR internal_error"
"""What some types say about a text. It is the cause if its cast fails alone; else no row is."""


@dataclass(frozen=True)
class BadRow:
    """A row that the target does not take.

    :param number: its place among the staged rows.
    """

    number: int
    why: str
    partition: int | None
    offset: int | None


class Stage:
    """The temporary table of one connection.

    :param plan: what is written where.
    """

    def __init__(self, connection: CopyConnection, plan: TablePlan) -> None:
        self.count = 0
        self._connection = connection
        self._plan = plan

    def begin(self) -> None:
        """Make the tables unless they are there, within the transaction and before any savepoint."""
        self.count = 0
        for statement in _creations(self._plan):
            self._connection.run(statement)

    def take(self, batch: pa.RecordBatch) -> list[tuple[int, str]]:
        """Stage a batch, and return the rows that cannot even be staged: index, and why.

        :raises StatementError: for another reason than a row.
        """
        return self._take(batch, 0)

    def move(self) -> list[BadRow]:
        """Move all staged rows into the target, and return those that it does not take.

        :raises StatementError: for another reason than a row.
        """
        if not self.count:
            return []
        try:
            with self._connection.savepoint(casts=self._plan.has_casts):
                self._connection.run(_move(self._plan, sql.Literal(0), sql.Literal(self.count)))
        except StatementError as error:
            if not (error.is_of_a_row or (self._plan.has_casts and error.may_be_of_a_cast)):
                raise
        else:
            return []
        self._find_bad()
        return self._bad()

    def set_aside(self, letters: LetterRows) -> None:
        """Copy the source records of the bad rows into the table of dead letters.

        They are read back for it: few, and a letter is made in one place.
        """
        assert self._plan.dead_letter is not None  # noqa: S101  asked for only where there is one
        found = self._connection.read(_bad_records(self._plan))
        for batch in found:
            self._connection.copy(self._plan.dead_letter, letters.of(batch, is_of_target=True))

    def empty(self) -> None:
        """Forget the staged rows, for the next batch of the same transaction."""
        self.count = 0
        self._connection.run(f"TRUNCATE pg_temp.{_stage(self._plan)}, pg_temp.{_BAD}")

    def _take(self, batch: pa.RecordBatch, first: int) -> list[tuple[int, str]]:
        try:
            with self._connection.savepoint():
                self._connection.copy(_stage(self._plan), self._numbered(batch), temporary=True)
        except StatementError as error:
            if not error.is_of_a_row:
                raise
            if batch.num_rows == 1:
                return [(first, error.message)]
        else:
            self.count += batch.num_rows
            return []
        middle = batch.num_rows // 2
        return self._take(batch.slice(0, middle), first) + self._take(batch.slice(middle), first + middle)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = [columns.PARTITION, columns.OFFSET, *_raw(self._plan), *self._plan.columns]
        number = np.arange(self.count, self.count + batch.num_rows, dtype=np.int64)
        added = pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, pa.py_buffer(number)])
        arrays = [added, *(batch.column(name) for name in names)]
        return pa.RecordBatch.from_arrays(arrays, names=[_NUMBER, *names])

    def _find_bad(self) -> None:
        """Move the good rows, part by part, so that no statement takes as long as the sink's time-out."""
        names = (_INDEX, _stage(self._plan), _NUMBER)
        index = sql.SQL("CREATE INDEX {} ON pg_temp.{} ({})").format(*map(sql.Identifier, names))
        self._connection.run(_text(index))
        for low in range(0, self.count, _PART):
            self._connection.run(_bisect(self._plan, low, min(low + _PART, self.count)))
        self._connection.run(f"DROP INDEX pg_temp.{_INDEX}")

    def _bad(self) -> list[BadRow]:
        query = sql.SQL(
            "SELECT b.number, b.why, s.{}, s.{} FROM {} b JOIN {} s ON s.{} = b.number ORDER BY 1"
        )
        names = (columns.PARTITION, columns.OFFSET, _BAD, _stage(self._plan), _NUMBER)
        return [
            BadRow(*row) for row in self._connection.ask(_text(query.format(*map(sql.Identifier, names))))
        ]


def _creations(plan: TablePlan) -> list[str]:
    return [
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({what}) ON COMMIT DELETE ROWS"
        for name, what in {_stage(plan): _definition(plan), _BAD: "number bigint, why text"}.items()
    ]


def _stage(plan: TablePlan) -> str:
    """Return the stage's name, by its columns: behind a pooler another sink may have left its own."""
    return _STAGE + hashlib.sha256(_definition(plan).encode()).hexdigest()[:12]


def _definition(plan: TablePlan) -> str:
    kinds = {_NUMBER: "bigint", columns.PARTITION: "integer", columns.OFFSET: "bigint"}
    kinds |= {name: _RAW_KINDS[name] for name in _raw(plan)}
    kinds |= {name: column.staged for name, column in plan.columns.items()}
    return ", ".join(f"{_text(sql.Identifier(name))} {kind}" for name, kind in kinds.items())


def _bisect(plan: TablePlan, low: int, high: int) -> str:
    return _BISECT.format(
        quote=f"$sinks_{uuid.uuid4().hex}$",
        low=low,
        high=high,
        bad=_BAD,
        stage=_stage(plan),
        number=_NUMBER,
        of_rows=_OF_ROWS + (_OF_CASTS if plan.has_casts else ""),
        casts=_text(_cast(plan)),
        move=_move(plan, sql.SQL("sinks_low"), sql.SQL("sinks_high")),
    )


def _move(plan: TablePlan, low: sql.Composable, high: sql.Composable) -> str:
    """Return the statement that moves a range of staged rows into the target."""
    part = sql.SQL("SELECT * FROM pg_temp.{} WHERE {} >= {} AND {} < {}").format(
        sql.Identifier(_stage(plan)), sql.Identifier(_NUMBER), low, sql.Identifier(_NUMBER), high
    )
    return _text(_upsert(plan, part) if plan.key else _append(plan, part))


def _append(plan: TablePlan, part: sql.Composed) -> sql.Composed:
    return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM ({}) AS part").format(
        identifier(plan.table), _names(list(plan.columns)), _cast(plan), part
    )


def _upsert(plan: TablePlan, part: sql.Composed) -> sql.Composed:
    """Return one statement: the newest row of each key, then deletes and upserts, which share no key.

    What one key is the table says, by type and collation of its columns: a text may spell it in two ways.
    """
    key = _names([_compared(plan, name) for name in plan.key])
    newest = sql.SQL("SELECT DISTINCT ON ({}) * FROM ({}) AS part ORDER BY {}, {} DESC").format(
        key, _with_compared(plan, part), key, sql.Identifier(_NUMBER)
    )
    others = [name for name in plan.columns if name not in plan.key]
    change = sql.SQL("DO NOTHING")
    if others:
        values = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others]
        change = sql.SQL("DO UPDATE SET {}").format(sql.SQL(", ").join(values))  # type: ignore[assignment]
    is_gone = _all_null(others) if plan.deletes and others else sql.SQL("false")
    delete = _delete(plan, is_gone) if plan.deletes and others else sql.SQL("")
    return sql.SQL(
        "WITH newest AS MATERIALIZED ({newest}){delete} INSERT INTO {table} ({names}) SELECT {values}"
        " FROM newest WHERE NOT ({is_gone}) ORDER BY {key} ON CONFLICT ({conflict}) {change}"
    ).format(
        newest=newest,
        delete=delete,
        table=identifier(plan.table),
        names=_names(list(plan.columns)),
        values=_cast(plan),
        is_gone=is_gone,
        key=key,
        conflict=_names(plan.key),
        change=change,
    )


def _compared(plan: TablePlan, name: str) -> str:
    """Return the name of a key column as the table compares it."""
    return f"{_KEY}{plan.key.index(name)}" if plan.columns[name].compared else name


def _with_compared(plan: TablePlan, part: sql.Composed) -> sql.Composed:
    """Return staged rows, and their keys as the table compares them."""
    values = [
        sql.SQL(", {}::{} AS {}").format(
            sql.Identifier(name), sql.SQL(plan.columns[name].compared), sql.Identifier(_compared(plan, name))
        )
        for name in plan.key
        if plan.columns[name].compared
    ]
    return sql.SQL("SELECT *{} FROM ({}) AS staged").format(sql.SQL("").join(values), part)


def _delete(plan: TablePlan, is_gone: sql.Composable) -> sql.Composed:
    same = [
        sql.SQL("known.{} = {}").format(sql.Identifier(name), sql.Identifier("newest", _compared(plan, name)))
        for name in plan.key
    ]
    return sql.SQL(", gone AS (DELETE FROM {} AS known USING newest WHERE {} AND ({}))").format(
        identifier(plan.table), sql.SQL(" AND ").join(same), is_gone
    )


def _all_null(names: Sequence[str]) -> sql.Composed:
    checks = [sql.SQL("newest.{} IS NULL").format(sql.Identifier(name)) for name in names]
    return sql.SQL(" AND ").join(checks)


def _bad_records(plan: TablePlan) -> str:
    """Return the query for the source records of bad rows, by the names that a batch of rows has."""
    names = [columns.PARTITION, columns.OFFSET, *_raw(plan)]
    return _text(
        sql.SQL(
            "SELECT b.why AS {}, {} FROM pg_temp.{} b JOIN pg_temp.{} s ON s.{} = b.number ORDER BY b.number"
        ).format(
            sql.Identifier(columns.ERROR),
            sql.SQL(", ").join(sql.SQL("s.{}").format(sql.Identifier(name)) for name in names),
            sql.Identifier(_BAD),
            sql.Identifier(_stage(plan)),
            sql.Identifier(_NUMBER),
        )
    )


def _raw(plan: TablePlan) -> tuple[str, ...]:
    return columns.RAW if plan.dead_letter else ()


def _names(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _cast(plan: TablePlan) -> sql.Composed:
    return sql.SQL(", ").join(_value(plan, name) for name in plan.columns)


def _value(plan: TablePlan, name: str) -> sql.Composable:
    """Return a staged column as the target's type without its length: a cast to that would cut values off."""
    column = plan.columns[name]
    given = sql.Identifier(name)
    if not column.is_cast:
        return given
    return sql.SQL("{}::{}").format(given, sql.SQL(column.plain))


def _text(part: sql.Composable) -> str:
    return part.as_string(None)
