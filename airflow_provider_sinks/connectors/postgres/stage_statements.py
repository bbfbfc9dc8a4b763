"""The SQL of a stage: its tables, how their rows get into the target, how bad ones are found."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence

from psycopg import sql

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.factory import TablePlan
from airflow_provider_sinks.connectors.postgres.row_errors import OF_A_CAST, OF_A_ROW

_STAGE = "sinks_stage_"
_BAD = "sinks_bad"
_INDEX = "sinks_stage_number"
DROP_INDEX = f"DROP INDEX pg_temp.{_INDEX}"
NUMBER = "__sinks_number"
_KEY = "__sinks_key_"
_RAW_KINDS = {
    columns.RAW_KEY: "bytea",
    columns.RAW_VALUE: "bytea",
    columns.RAW_TIMESTAMP: "bigint",
    columns.RAW_HEADERS: "text",
}

DROPPED = "a trigger of the table drops the row"
_COUNTED = """
            GET DIAGNOSTICS sinks_count = ROW_COUNT;
            IF sinks_count <> sinks_high - sinks_low THEN
                RAISE EXCEPTION '%', '{dropped}';
            END IF;"""
_BISECT = """
DO {quote}
DECLARE
    sinks_lows bigint[] := ARRAY[{low}]; sinks_highs bigint[] := ARRAY[{high}];
    sinks_low bigint; sinks_high bigint; sinks_middle bigint; sinks_left int; sinks_why text;
    sinks_state text; sinks_is_of_row boolean; sinks_count bigint;
BEGIN
    LOOP
        sinks_left := cardinality(sinks_lows);
        EXIT WHEN sinks_left = 0;
        sinks_low := sinks_lows[sinks_left]; sinks_high := sinks_highs[sinks_left];
        sinks_lows := sinks_lows[1:sinks_left - 1]; sinks_highs := sinks_highs[1:sinks_left - 1];
        BEGIN
            {move};{counted}
        EXCEPTION WHEN OTHERS OR assert_failure THEN
            IF SQLSTATE !~ '{of_rows}' THEN
                RAISE;
            END IF;
            IF sinks_high - sinks_low = 1 THEN
                GET STACKED DIAGNOSTICS sinks_why = MESSAGE_TEXT, sinks_state = RETURNED_SQLSTATE;
                sinks_is_of_row := true;
                IF sinks_state ~ '{of_casts}' THEN
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
"""A text is the cause of an error of a cast if its cast fails alone; else no row is."""


def creations(plan: TablePlan) -> list[str]:
    """Return the statements that make the tables, unless they are there."""
    return [
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({what}) ON COMMIT DELETE ROWS"
        for name, what in {stage(plan): _definition(plan), _BAD: "number bigint, why text"}.items()
    ]


def stage(plan: TablePlan) -> str:
    """Return the stage's name, by its columns: behind a pooler another sink may have left its own."""
    return _STAGE + hashlib.sha256(_definition(plan).encode()).hexdigest()[:12]


def _definition(plan: TablePlan) -> str:
    kinds = {NUMBER: "bigint", columns.PARTITION: "integer", columns.OFFSET: "bigint"}
    kinds |= {columns.DELETED: "boolean"} if plan.says_deletes else {}
    kinds |= {name: _RAW_KINDS[name] for name in raw_columns(plan)}
    kinds |= {name: column.staged for name, column in plan.columns.items()}
    return ", ".join(f"{_text(sql.Identifier(name))} {kind}" for name, kind in kinds.items())


def empty(plan: TablePlan) -> str:
    """Return the statement that empties the tables."""
    return f"TRUNCATE pg_temp.{stage(plan)}, pg_temp.{_BAD}"


def make_index(plan: TablePlan) -> str:
    """Return the statement for an index on the numbers of the staged rows."""
    names = (_INDEX, stage(plan), NUMBER)
    return _text(sql.SQL("CREATE INDEX {} ON pg_temp.{} ({})").format(*map(sql.Identifier, names)))


def bisect(plan: TablePlan, low: int, high: int) -> str:
    """Return the statement that moves the good rows of a range, and writes down the bad ones."""
    return _BISECT.format(
        quote=f"$sinks_{uuid.uuid4().hex}$",
        low=low,
        high=high,
        bad=_BAD,
        stage=stage(plan),
        number=NUMBER,
        of_rows=f"{OF_A_ROW}|{OF_A_CAST}" if plan.has_casts else OF_A_ROW,
        of_casts=OF_A_CAST,
        casts=_text(_cast(plan)),
        move=move(plan, sql.SQL("sinks_low"), sql.SQL("sinks_high")),
        counted=_COUNTED.format(dropped=DROPPED) if plan.is_counted else "",
    )


def move(plan: TablePlan, low: sql.Composable, high: sql.Composable) -> str:
    """Return the statement that moves a range of staged rows into the target."""
    part = sql.SQL("SELECT * FROM pg_temp.{} WHERE {} >= {} AND {} < {}").format(
        sql.Identifier(stage(plan)), sql.Identifier(NUMBER), low, sql.Identifier(NUMBER), high
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
        key, _with_compared(plan, part), key, sql.Identifier(NUMBER)
    )
    others = [name for name in plan.columns if name not in plan.key]
    change = sql.SQL("DO NOTHING")
    if others:
        values = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others]
        change = sql.SQL("DO UPDATE SET {}").format(sql.SQL(", ").join(values))  # type: ignore[assignment]
    is_gone = _is_gone(plan, others)
    delete = sql.SQL("") if is_gone is None else _delete(plan, is_gone)
    return sql.SQL(
        "WITH newest AS MATERIALIZED ({newest}){delete} INSERT INTO {table} ({names}) SELECT {values}"
        " FROM newest WHERE NOT ({is_gone}) ORDER BY {key} ON CONFLICT ({conflict}) {change}"
    ).format(
        newest=newest,
        delete=delete,
        table=identifier(plan.table),
        names=_names(list(plan.columns)),
        values=_cast(plan),
        is_gone=is_gone or sql.SQL("false"),
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


def _is_gone(plan: TablePlan, others: Sequence[str]) -> sql.Composable | None:
    """Return the condition for rows that take their key away; ``None`` where none does."""
    if plan.says_deletes:
        return sql.SQL("newest.{}").format(sql.Identifier(columns.DELETED))
    return _all_null(others) if plan.deletes and others else None


def _all_null(names: Sequence[str]) -> sql.Composed:
    checks = [sql.SQL("newest.{} IS NULL").format(sql.Identifier(name)) for name in names]
    return sql.SQL(" AND ").join(checks)


def bad_rows(plan: TablePlan) -> str:
    """Return the query for the bad rows: number, reason, partition and offset."""
    query = sql.SQL("SELECT b.number, b.why, s.{}, s.{} FROM {} b JOIN {} s ON s.{} = b.number ORDER BY 1")
    names = (columns.PARTITION, columns.OFFSET, _BAD, stage(plan), NUMBER)
    return _text(query.format(*map(sql.Identifier, names)))


def bad_records(plan: TablePlan) -> str:
    """Return the query for the source records of bad rows, by the names that a batch of rows has."""
    names = [columns.PARTITION, columns.OFFSET, *raw_columns(plan)]
    return _text(
        sql.SQL(
            "SELECT b.why AS {}, {} FROM pg_temp.{} b JOIN pg_temp.{} s ON s.{} = b.number ORDER BY b.number"
        ).format(
            sql.Identifier(columns.ERROR),
            sql.SQL(", ").join(sql.SQL("s.{}").format(sql.Identifier(name)) for name in names),
            sql.Identifier(_BAD),
            sql.Identifier(stage(plan)),
            sql.Identifier(NUMBER),
        )
    )


def raw_columns(plan: TablePlan) -> tuple[str, ...]:
    """Return the columns of the source records, where rows may be set aside."""
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
