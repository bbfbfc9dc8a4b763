"""Tables that sinks write, read and administered by Delta's own Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.lake_spark import LakeSpark
from tests.live.shop_rows import FOURTH, ROWS, SCHEMA
from tests.live.stage import Sink, Stage


@pytest.fixture
def table(tmp_path: Path) -> str:
    """How Spark calls the table."""
    return f"delta.`{tmp_path / 't'}`"


def _sink(stage: Stage, source: str, folder: Path, target: dict[str, Any], **parts: Any) -> Sink:
    given = {"path": str(folder / "t"), "create": True, **target}
    return stage.sink("lake", source, from_={"schema": SCHEMA}, target={"delta": given}, **parts)


def _ids(spark: LakeSpark, table: str) -> list[int]:
    return [row[0] for row in spark.sql("SELECT id FROM {t} ORDER BY 1", table)]


def test_appended_rows_are_read_and_skipped_by_their_bounds(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path
) -> None:
    source = stage.source("append", {0: ROWS, 1: ROWS[:1]})
    query = "SELECT *, to_date(at) AS day FROM source"
    sink = _sink(stage, source, tmp_path, {"partition_by": "day"}, query=query)
    sink.run()
    stage.produce(source, [(0, *ROWS[1])])
    sink.run()

    found = delta_reader.sql(
        "SELECT id, userid, price, at, CAST(day AS string) FROM {t} ORDER BY id, at", table
    )
    ann, bob = ["2026-11-20 10:00:00.123456", "2026-11-20"], ["2026-11-21 23:59:59.999999", "2026-11-21"]
    assert found == [
        *[[1, "ann", "1.25", *ann]] * 2,
        *[[2, "bob", "7.00", *bob]] * 2,
        [3, "eve é", "-0.01", None, None],
    ]
    pruned = delta_reader.sql(
        "SELECT id FROM {t} WHERE day = DATE '2026-11-20' AND price > 1"
        " AND at < TIMESTAMP '2026-11-20 10:00:00.123457'",
        table,
    )
    assert pruned == [[1], [1]]


def test_replaced_rows_are_read_once(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path
) -> None:
    source = stage.source("upsert", {0: [*ROWS, ("k", '{"id": 2, "userid": "two"}')]})
    sink = _sink(stage, source, tmp_path, {"mode": "upsert", "key": "id"}, select=["id", "userid"])
    sink.run()
    stage.produce(source, [(0, "k", '{"id": 3, "userid": "zoe"}'), (0, *FOURTH)])
    sink.run()

    found = delta_reader.sql("SELECT id, userid FROM {t} ORDER BY 1", table)
    assert found == [[1, "ann"], [2, "two"], [3, "zoe"], [4, "zoe"]]


_MERGE = (
    "MERGE INTO {t} t USING (SELECT 100 AS id, 'theirs' AS userid) s ON t.id = s.id"
    " WHEN NOT MATCHED THEN INSERT (id, userid) VALUES (s.id, s.userid)"
)
_MAINTAINS: dict[str, Sequence[str]] = {
    "OPTIMIZE": ["OPTIMIZE {t}"],
    "VACUUM": ["OPTIMIZE {t}", "VACUUM {t}"],
    "VACUUM LITE": ["OPTIMIZE {t}", "VACUUM {t} LITE"],
    "append of others": ["INSERT INTO {t} (id, userid) VALUES (100, 'theirs')"],
    "MERGE of others": [_MERGE],
    "an added column": ["ALTER TABLE {t} ADD COLUMNS (more string)"],
}


@pytest.mark.parametrize("statements", _MAINTAINS.values(), ids=list(_MAINTAINS))
def test_the_sink_goes_on_behind_what_others_do_by_spark(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path, statements: Sequence[str]
) -> None:
    source = stage.source("others", {0: ROWS})
    sink = _sink(stage, source, tmp_path, {})
    sink.run()
    for statement in statements:
        delta_reader.sql(statement, table)
    stage.produce(source, [(0, *FOURTH)])
    status = sink.run()

    assert status.rows_total == 4
    assert [one for one in _ids(delta_reader, table) if one < 100] == [1, 2, 3, 4]


_RULED = """
    CREATE TABLE {t} (id bigint, userid string, at timestamp, more string, parts struct<a: array<int>>,
      pair struct<id: bigint> GENERATED ALWAYS AS (named_struct('id', id)),
      day date GENERATED ALWAYS AS (CAST(at AS date)),
      many bigint GENERATED ALWAYS AS (id * 3000000000))
    USING delta PARTITIONED BY (day)"""


def test_what_a_table_demands_of_its_rows_is_computed_and_checked_as_by_spark(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path
) -> None:
    """The ids are 32 bits wide in the query: what is generated of them is not."""
    delta_reader.sql(_RULED, table)
    delta_reader.sql("ALTER TABLE {t} ADD CONSTRAINT known CHECK (userid <> 'eve')", table)
    delta_reader.sql("ALTER TABLE {t} ADD CONSTRAINT untold CHECK (more IS NULL)", table)
    with pytest.raises(AssertionError, match="DELTA_VIOLATE_CONSTRAINT"):
        delta_reader.sql("INSERT INTO {t} (id) VALUES (7)", table)  # a check that is null does not hold
    records = ["ann", "eve", None]
    source = stage.source(
        "ruled",
        {
            0: [
                ("k", json.dumps({"id": n, "userid": who, "at": "2026-11-20T10:00:00Z"}))
                for n, who in enumerate(records, 1)
            ]
        },
    )
    dead = {"dead_letter": {"path": str(tmp_path / "dead")}}
    sink = _sink(stage, source, tmp_path, {"create": False}, select=["id", "userid", "at"], **dead)

    status = sink.run()

    assert (status.rows_total, status.dead_total) == (1, 2)
    found = delta_reader.sql("SELECT id, userid, CAST(day AS string), many, pair.id FROM {t}", table)
    assert found == [[1, "ann", "2026-11-20", 3000000000, 1]]
    told = delta_reader.sql("SELECT source_offset, error FROM {t} ORDER BY 1", f"delta.`{tmp_path / 'dead'}`")
    assert told == [[n, "constraint known does not hold: userid <> 'eve'"] for n in (1, 2)]


def test_an_expression_that_fails_for_a_value_ends_the_sink_before_its_rows_are_visible(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path
) -> None:
    delta_reader.sql(_RULED, table)
    large = {"id": 4_000_000_000_000_000_000, "userid": "ann"}
    source = stage.source("overflows", {0: [("k", json.dumps(large))]})
    dead = {"dead_letter": {"path": str(tmp_path / "dead")}}
    sink = stage.sink(
        "lake",
        source,
        from_={"schema": "id long, userid string"},
        target={"delta": {"path": str(tmp_path / "t")}},
        **dead,
    )

    error = sink.fail(ExitCode.FAILED).error

    assert error is not None
    assert "ARITHMETIC_OVERFLOW" in f"{error.primary} {error.detail}"
    assert delta_reader.sql("SELECT count(*) FROM {t}", table) == [[0]]


def test_a_generated_column_that_the_query_gives_must_be_what_is_generated(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path
) -> None:
    delta_reader.sql(_RULED, table)
    source = stage.source("given", {0: ROWS[:2]})
    columns = ["id", "at", "IF(id = 1, to_date(at), DATE '2000-01-01') AS day"]
    dead = {"dead_letter": {"path": str(tmp_path / "dead")}}

    status = _sink(stage, source, tmp_path, {"create": False}, select=columns, **dead).run()

    assert (status.rows_total, status.dead_total) == (1, 1)
    assert delta_reader.sql("SELECT id, many FROM {t}", table) == [[1, 3000000000]]
    told = delta_reader.sql("SELECT error FROM {t}", f"delta.`{tmp_path / 'dead'}`")
    assert told == [["column day is not CAST(at AS date)"]]


_HARMS: dict[str, tuple[str, str]] = {
    "RESTORE": ("RESTORE TABLE {t} TO VERSION AS OF 0", "is not the one that sink"),
    "CREATE OR REPLACE": (
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id",
        "is not the one that sink",
    ),
    "deletion vectors": (
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "deletionVectors",
    ),
}


@pytest.mark.parametrize("harm", list(_HARMS))
def test_the_sink_is_refused_behind_what_others_do_by_spark(
    stage: Stage, delta_reader: LakeSpark, table: str, tmp_path: Path, harm: str
) -> None:
    statement, told = _HARMS[harm]
    source = stage.source("harmed", {0: ROWS})
    sink = _sink(stage, source, tmp_path, {}, select=["id"])
    sink.run()
    delta_reader.sql(statement, table)

    error = sink.fail(ExitCode.REFUSED).error

    assert error is not None
    assert told in f"{error.primary} {error.detail}"
    assert error.hint
