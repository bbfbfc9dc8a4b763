"""Sinks whose target is a Delta table, read back by delta-rs as any other program does."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.streaming import driver_share
from tests.live.shop_rows import ROWS, SCHEMA
from tests.live.stage import KeyValue, Sink, Stage

_BROKEN: KeyValue = ("k", "no JSON")
_LATE: KeyValue = ("k", '{"id": 9}')
_DAY = "IF(id = 9, date_add(DATE '9999-12-31', 1), to_date(at)) AS day"
"""No reader takes the year 10,000 as a partition."""
_SMALL = 50
"""Beside so many rows of few bytes an epoch looks small before it is read."""


def _sink(stage: Stage, source: str, path: Path, target: dict[str, Any], **parts: Any) -> Sink:
    given = {"path": str(path), "create": True, **target}
    return stage.sink("lake", source, from_={"schema": SCHEMA}, target={"delta": given}, **parts)


def _rows(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in found), key=str)


def test_rows_are_appended_once_over_starts_to_partitions_and_a_table_of_letters(
    stage: Stage, tmp_path: Path
) -> None:
    source, path, dead = (
        stage.source("append", {0: [*ROWS, _BROKEN, _LATE], 1: ROWS[:1]}),
        tmp_path / "t",
        tmp_path / "d",
    )
    query = f"SELECT *, {_DAY} FROM source"  # noqa: S608  no user's text is in it
    sink = _sink(stage, source, path, {"partition_by": "day"}, query=query, dead_letter={"path": str(dead)})

    first = sink.run()
    DeltaTable(path).optimize.compact()
    stage.produce(source, [(0, *ROWS[1])])
    second, third = sink.run(), sink.run()

    assert [status.rows_total for status in (first, second, third)] == [4, 5, 5]
    ann = (1, "ann", Decimal("1.25"), dt.datetime(2026, 11, 20, 10, 0, 0, 123456, dt.UTC))
    bob = (2, "bob", Decimal("7.00"), dt.datetime(2026, 11, 21, 23, 59, 59, 999999, dt.UTC))
    assert _rows(path, "id", "userid", "price", "at") == [
        ann,
        ann,
        bob,
        bob,
        (3, "eve é", Decimal("-0.01"), None),
    ]
    assert {row[0] for row in _rows(path, "day")} == {dt.date(2026, 11, 20), dt.date(2026, 11, 21), None}
    beyond = "partition column day is beyond the years 1 to 9999, which no reader takes"
    assert [row[0] for row in _rows(dead, "source_offset", "value")] == [3, 4]
    assert beyond in {row[0] for row in _rows(dead, "error")}


def test_what_was_staged_beside_a_row_that_the_driver_has_no_room_for_is_taken_away(
    stage: Stage, tmp_path: Path
) -> None:
    large: KeyValue = ("k", json.dumps({"id": 9, "userid": "x" * 2 * driver_share.ROW_BYTES_MAX}))
    source, path = stage.source("large", {0: ROWS[:1] * _SMALL, 1: [large]}), tmp_path / "t"

    status = _sink(stage, source, path, {}).run()

    assert (status.rows_total, [row[0] for row in _rows(path, "id")]) == (_SMALL + 1, [1] * _SMALL + [9])
    assert {Path(uri).name for uri in DeltaTable(path).file_uris()} == {
        f.name for f in path.rglob("*.parquet")
    }


def test_rows_of_one_key_replace_each_other_and_every_type_is_read_back_as_it_was(
    stage: Stage, tmp_path: Path
) -> None:
    wanted: dict[str, tuple[str, Any]] = {
        "tiny": ("CAST(id AS tinyint)", 1),
        "large": ("CAST(id AS bigint) * 3000000000", 3000000000),
        "nan": ("CAST('NaN' AS double)", math.nan),
        "wide": ("CAST('-12345678901234567890.123' AS decimal(38,3))", Decimal("-12345678901234567890.123")),
        "day": ("DATE '1600-02-29'", dt.date(1600, 2, 29)),
        "moment": (
            "TIMESTAMP '1969-12-31 23:59:59.999999Z'",
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
        ),
        "wall": (
            "TIMESTAMP_NTZ '2026-03-29 02:30:00.000001'",
            dt.datetime.fromisoformat("2026-03-29T02:30:00.000001"),
        ),
        "bytes": ("X'00ff'", b"\x00\xff"),
        "Odd.Name": ("named_struct('a b', 1, 'c', array('x', NULL))", {"a b": 1, "c": ["x", None]}),
        "pairs": ("map('k', named_struct('v', DATE '2026-01-01'))", [("k", {"v": dt.date(2026, 1, 1)})]),
        "nothing": ("CAST(NULL AS string)", None),
    }
    source = stage.source("upsert", {0: [*ROWS, ("k", '{"id": 2, "userid": "two"}')]})
    select = ["id", "userid", *(f"{sql} AS `{name}`" for name, (sql, _) in wanted.items())]
    sink = _sink(stage, source, tmp_path / "t", {"key": "id", "mode": "upsert"}, select=select)

    sink.run()
    stage.produce(source, [(0, "k", '{"id": 3, "userid": "zoe"}'), (0, "k", '{"id": 4, "userid": "new"}')])
    status = sink.run()

    assert status.rows_total == 6
    assert _rows(tmp_path / "t", "id", "userid") == [(1, "ann"), (2, "two"), (3, "zoe"), (4, "new")]
    row = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id").to_pylist()[0]
    assert math.isnan(row.pop("nan"))
    assert row == {
        "id": 1,
        "userid": "ann",
        **{name: value for name, (_, value) in wanted.items() if name != "nan"},
    }


def test_a_table_that_is_restored_is_refused_until_it_is_restored_forward(
    stage: Stage, tmp_path: Path
) -> None:
    source, path = stage.source("back", {0: ROWS}), tmp_path / "t"
    sink = _sink(stage, source, path, {}, select=["id"])
    sink.run()
    newest = DeltaTable(path).version()
    DeltaTable(path).restore(0)

    error = sink.fail(ExitCode.REFUSED).error

    assert error is not None
    assert error.primary.startswith(f'data table "{path}" is not the one that sink')
    assert f"without snapshot {newest}" in error.detail
    DeltaTable(path).restore(newest)
    sink.run()
    assert _rows(path, "id") == [(1,), (2,), (3,)]
