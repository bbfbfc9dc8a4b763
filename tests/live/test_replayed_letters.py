"""Which letters a replay takes: Spark, which reads them, and whoever counts them before say the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.table_format.encoding import encode
from airflow_provider_sinks.connectors.table_format.types import Column
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass, Letter, Origin
from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection, Taken, within
from airflow_provider_sinks.core.dead_letters.spelling import letter_headers, letter_of_record
from airflow_provider_sinks.streaming.replayed_letters import selected

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

_COLUMNS = (
    "partition int, offset bigint, timestamp timestamp, headers array<struct<key: string, value: binary>>"
)
_ERRORS = [
    "The value is not JSON.",
    "The value cannot be written: field a is null.",
    "column id: two\nlines does not fit smallint",
    "key column my col is null",
    "partition column day is an empty text, which reads as null",
    'Topic "out" does not take the row. It has 7 bytes.',
    "whatever the target says",
    "",
]
_OURS = Circumstances("orders", "raw")
_SEVERAL = Circumstances("orders", "raw", may_multiply=True)
_OTHERS = Circumstances("clicks", "raw")


def _headers() -> list[tuple[tuple[str, bytes | None], ...]]:
    """Return the headers of letters of each kind, with and without what a release before did not write."""
    told = [
        letter_headers(error, kind, where.origin(0, 3, 5, (("trace", b"1"),)), where)
        for where in (_OURS, _SEVERAL, _OTHERS)
        for error in _ERRORS
        for kind in (ErrorClass.of_row(error), ErrorClass.TOO_LARGE)
    ]
    untold = [tuple((n, v) for n, v in one if n not in ("error.class", "sink")) for one in told]
    digested = [(*one, ("value.bytes", b"9"), ("value.sha256", b"0")) for one in told[:2]]
    return [*told, *untold, *digested, (("error", b"of nowhere"),), ()]


def _letters() -> list[tuple[int, Letter, tuple[tuple[str, bytes | None], ...]]]:
    return [
        (offset, letter_of_record((offset % 2, offset), 1_000 * offset, None, b"v", headers), headers)
        for offset, headers in enumerate(_headers())
    ]


@pytest.fixture(scope="module")
def records(spark_session: SparkSession) -> DataFrame:
    """The same letters as Spark reads them."""
    rows = [
        (offset % 2, offset, datetime.fromtimestamp(offset, UTC), list(headers))
        for offset, _, headers in _letters()
    ]
    return spark_session.createDataFrame(rows, _COLUMNS)


_SELECTIONS: list[dict[str, Any]] = [
    {},
    {"without_rows": True},
    {"errors": ("parse",)},
    {"errors": ("convert", "target says")},
    {"errors": ("is",), "without_rows": True},
    {"since_ms": 10_000, "before_ms": 40_000},
    {"offsets": {0: (3, 30), 1: (0, 11)}},
]


@pytest.mark.parametrize("given", _SELECTIONS)
@pytest.mark.parametrize("done", [(), ({"errors": ("parse",)}, {"without_rows": True})])
@pytest.mark.parametrize("copied", [False, True])
def test_spark_reads_the_letters_that_were_counted(
    records: DataFrame, given: dict[str, Any], done: tuple[dict[str, Any], ...], copied: bool
) -> None:
    took = tuple(Taken(selection=Selection(**one), below={0: 20, 1: 15}) for one in done)
    selection, until = Selection(**given), {0: 80, 1: 90}
    gone = ((3, 6), (11, 12)) if copied else ()
    parts: dict[str, Any] = {"selection": selection, "until": until, "done": took, "copied": copied}
    replay = Replay(sink="orders", topic="raw", gone=gone, **parts)

    read = {row["offset"] for row in selected(records, replay).collect()}

    assert read == {
        offset
        for offset, letter, _ in _letters()
        if letter.is_of("orders", "raw") and letter.can_be_replayed and replay.takes(letter)
    }
    assert read


def test_what_a_table_does_not_take_as_a_partition_is_of_the_class_of_conversions(
    spark_session: SparkSession,
) -> None:
    given = spark_session.sql(
        "SELECT 0 AS __sinks_partition, 1L AS __sinks_offset, CAST(NULL AS string) AS __sinks_error, "
        "name, CAST(day AS date) AS day FROM VALUES ('', '2026-01-01'), ('a', '+10000-01-01') AS t(name, day)"
    )
    columns = {name: Column(name, kind, kind) for name, kind in (("name", "string"), ("day", "date"))}

    found = encode(given, columns, (), keeps_raw=False, never_empty=["name"], common_years=["day"]).over(
        given
    )

    errors = [row[0] for row in found.select(sql.col("__sinks_error")).collect()]
    assert [ErrorClass.of_row(error) for error in errors] == [ErrorClass.CONVERT] * 2
    letter = Letter((0, 0), 1, errors[0], None, Origin("raw", 0, 0), None, None)
    assert within(Selection(), may_multiply=True).takes(letter) is False
