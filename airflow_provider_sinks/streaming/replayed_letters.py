"""Which records of a dead-letter topic a replay takes, in Spark's expressions; :mod:`.replay` says the same.

What tells a letter apart never changes, so a range that is read again gives the same letters.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.core.dead_letters.letter import CLASS_WORDS, ErrorClass
from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection
from airflow_provider_sinks.core.dead_letters.spelling import ROWS_HEADER
from airflow_provider_sinks.streaming.transform import HEADERS


def selected(records: DataFrame, replay: Replay) -> DataFrame:
    """Return the letters that a replay takes.

    :param records: of the dead-letter topic, with their headers.
    """
    place = _told_place() if replay.copied else (sql.col("partition"), sql.col("offset"))
    done = [_takes(taken.selection, place) & _below(taken.below) for taken in replay.done]
    wanted = [
        _is_of(replay),
        _can_be_replayed(),
        _below(replay.until),
        *(~sql.col("offset").between(first, end - 1) for first, end in replay.gone),
        _takes(replay.selection, place),
        *(~sql.coalesce(one, sql.lit(False)) for one in done),
    ]
    return records.where(reduce(Column.__and__, wanted))


def _is_of(replay: Replay) -> Column:
    """Whether a letter is of the sink; releases that did not say so named the source topic alone."""
    return sql.coalesce(
        _header("sink") == replay.sink, _header("source.topic") == replay.topic, sql.lit(False)
    )


def _can_be_replayed() -> Column:
    """Whether the letter holds the record itself, not its digest alone, and no other row of it is written."""
    is_whole = _header("value.sha256").isNull() & _header("source.offset").isNotNull()
    return is_whole & _header(ROWS_HEADER).isNull()


def _told_place() -> tuple[Column, Column]:
    """Return where a record was in the source: of letters that stand in a table, offsets are those."""
    return _header("source.partition").cast("int"), _header("source.offset").cast("bigint")


def _takes(selection: Selection, place: tuple[Column, Column]) -> Column:
    at_ms, (partition, offset) = sql.unix_millis("timestamp"), place
    said = [sql.lit(True)]
    if selection.without_rows:
        said.append(_class() == ErrorClass.PARSE.value)
    if selection.errors:
        kind, error = _class(), sql.coalesce(_header("error"), sql.lit(""))
        fits = [(kind == text) | sql.contains(error, sql.lit(text)) for text in selection.errors]
        said.append(reduce(Column.__or__, fits))
    if selection.since_ms is not None:
        said.append(at_ms >= selection.since_ms)
    if selection.before_ms is not None:
        said.append(at_ms < selection.before_ms)
    if selection.offsets:
        ranges = [
            (partition == p) & (offset >= first) & (offset < end)
            for p, (first, end) in selection.offsets.items()
        ]
        said.append(sql.coalesce(reduce(Column.__or__, ranges), sql.lit(False)))
    return reduce(Column.__and__, said)


def _below(ends: dict[int, int]) -> Column:
    below = [(sql.col("partition") == p) & (sql.col("offset") < end) for p, end in ends.items()]
    return reduce(Column.__or__, below, sql.lit(False))


def _class() -> Column:
    error = sql.coalesce(_header("error"), sql.lit(""))
    by_words = sql.lit(ErrorClass.REFUSED.value)
    for kind, words in reversed(list(CLASS_WORDS.items())):
        by_words = sql.when(sql.rlike(error, sql.lit(words)), sql.lit(kind.value)).otherwise(by_words)
    return sql.coalesce(_header("error.class"), by_words)


def _header(name: str) -> Column:
    """Return the first header of a name as text, or null."""
    found = sql.filter(sql.col(HEADERS), lambda header: header["key"] == name)
    return sql.get(found, sql.lit(0))["value"].cast("string")
