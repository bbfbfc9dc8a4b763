"""Sinks whose target is an Iceberg table, read and administered by Iceberg's own Spark."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.lake_spark import LakeSpark
from tests.live.shop_rows import FOURTH, ROWS, SCHEMA
from tests.live.stage import WHO_WRITES, Sink, Stage


@pytest.fixture
def table() -> str:
    """A namespace and a table of its own."""
    return f"shop_{uuid.uuid4().hex[:8]}.orders"


def _sink(stage: Stage, source: str, table: str, target: dict[str, Any], **parts: Any) -> Sink:
    given = {"catalog": "lake", "table": table, "create": True, **target}
    from_ = {"schema": parts.pop("schema", SCHEMA)}
    return stage.sink("lake", source, from_=from_, target={"iceberg": given}, **parts)


def _ids(spark: LakeSpark, table: str) -> list[int]:
    return [row[0] for row in spark.sql("SELECT id FROM {t} ORDER BY 1", table)]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_are_appended_once_over_starts_to_a_table_that_is_made(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    source = stage.source("append", {0: ROWS, 1: ROWS[:1]})
    sink = _sink(stage, source, table, {"partition_by": ["day(at)"]})

    first = sink.run()
    stage.produce(source, [(0, *ROWS[1])])
    second = sink.run()
    third = sink.run()

    assert [status.rows_total for status in (first, second, third)] == [4, 5, 5]
    assert first.health == "well"
    found = lake_spark.sql("SELECT id, userid, price, at FROM {t} ORDER BY id, at", table)
    assert found == [
        [1, "ann", "1.25", "2026-11-20 10:00:00.123456"],
        [1, "ann", "1.25", "2026-11-20 10:00:00.123456"],
        [2, "bob", "7.00", "2026-11-21 23:59:59.999999"],
        [2, "bob", "7.00", "2026-11-21 23:59:59.999999"],
        [3, "eve é", "-0.01", None],
    ]
    by_day = lake_spark.sql(
        "SELECT CAST(partition.at_day AS string), record_count FROM {t}.partitions", table
    )
    assert sorted(by_day, key=str) == sorted([["2026-11-20", 2], ["2026-11-21", 2], [None, 1]], key=str)
    pruned = lake_spark.sql("SELECT id FROM {t} WHERE at < TIMESTAMP '2026-11-21' AND price > 1", table)
    assert pruned == [[1], [1]]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_of_one_key_replace_each_other_within_an_epoch_and_over_starts(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    source = stage.source("upsert", {0: [*ROWS, ("k", '{"id": 2, "userid": "two"}')], 1: ROWS[:1]})
    sink = _sink(stage, source, table, {"key": "id", "mode": "upsert"}, select=["id", "userid"])

    sink.run()
    assert lake_spark.sql("SELECT id, userid FROM {t} ORDER BY 1", table) == [
        [1, "ann"],
        [2, "two"],
        [3, "eve é"],
    ]
    stage.produce(source, [(0, "k", '{"id": 3, "userid": "zoe"}'), (1, "k", '{"id": 4, "userid": "new"}')])
    lake_spark.sql("CALL lake.system.rewrite_data_files('{t}')", table)
    sink.run()
    sink.run()

    found = lake_spark.sql("SELECT id, userid FROM {t} ORDER BY 1", table)
    assert found == [[1, "ann"], [2, "two"], [3, "zoe"], [4, "new"]]


def test_every_type_of_spark_is_read_back_as_it_was(stage: Stage, lake_spark: LakeSpark, table: str) -> None:
    columns = [
        "CAST(id AS tinyint) AS tiny",
        "CAST(id AS smallint) AS small",
        "id",
        "CAST(id AS bigint) * 3000000000 AS large",
        "CAST(0.1 AS float) AS single_",
        "CAST('NaN' AS double) AS nan",
        "CAST(-12345678901234567890123456789.123456789 AS decimal(38,9)) AS wide",
        "true AS yes",
        "DATE '1600-02-29' AS day",
        "TIMESTAMP '1969-12-31 23:59:59.999999Z' AS moment",
        "TIMESTAMP_NTZ '2026-03-29 02:30:00.000001' AS wall",
        "X'00ff' AS bytes",
        "named_struct('a b', 1, 'c', array('x', NULL)) AS `odd name.with dots`",
        "map('k', named_struct('v', DATE '2026-01-01')) AS pairs",
        "CAST(NULL AS string) AS nothing",
        "'' AS empty",
    ]
    source = stage.source("types", {0: ROWS[:1]})
    _sink(stage, source, table, {}, select=columns, schema="id int").run()

    found = lake_spark.sql(
        "SELECT tiny, small, id, large, CAST(single_ AS string), CAST(nan AS string), CAST(wide AS string),"
        " yes, CAST(day AS string), CAST(moment AS string), CAST(wall AS string), hex(bytes),"
        " to_json(`odd name.with dots`), to_json(pairs), nothing, empty FROM {t}",
        table,
    )
    assert found == [
        [
            *[1, 1, 1, 3000000000, "0.1", "NaN", "-12345678901234567890123456789.123456789", True],
            *["1600-02-29", "1969-12-31 23:59:59.999999", "2026-03-29 02:30:00.000001", "00FF"],
            *['{"a b":1,"c":["x",null]}', '{"k":{"v":"2026-01-01"}}', None, ""],
        ]
    ]
    kinds = {row[0]: row[1] for row in lake_spark.sql("DESCRIBE {t}", table)}
    assert (kinds["tiny"], kinds["moment"], kinds["wall"]) == ("int", "timestamp", "timestamp_ntz")


def test_what_is_set_aside_stands_in_a_table_of_its_own(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    source = stage.source("bad", {0: [*ROWS, ("k", "{")]})
    sink = _sink(stage, source, table, {}, dead_letter={"table": f"{table}_dead"})

    status = sink.run()

    assert (status.rows_total, status.dead_total) == (3, 1)
    assert _ids(lake_spark, table) == [1, 2, 3]
    found = lake_spark.sql(
        "SELECT sink, source_partition, source_offset, CAST(value AS string) FROM {t}_dead", table
    )
    assert found == [[sink.parsed.name, 0, 3, "{"]]


def test_a_record_that_does_not_parse_stops_a_sink_that_sets_nothing_aside(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    sink = _sink(stage, stage.source("stop", {0: [*ROWS, ("k", "{")]}), table, {})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert "at offset 3" in error.detail
    assert _ids(lake_spark, table) == []


def test_a_table_that_is_dropped_is_refused_and_mended_by_its_registration(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    source = stage.source("dropped", {0: ROWS})
    sink = _sink(stage, source, table, {})
    sink.run()
    newest = lake_spark.sql(
        "SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1", table
    )
    lake_spark.sql("DROP TABLE {t}", table)
    stage.produce(source, [(0, *FOURTH)])

    error = sink.fail(ExitCode.REFUSED).error

    assert error is not None
    assert error.primary.startswith("progress of sink")
    assert "is lost" in error.primary
    assert 'accept="start_over-' in error.hint
    lake_spark.sql("CALL lake.system.register_table('{t}', '{file}')", table, file=newest[0][0])
    assert sink.run().rows_total == 4
    assert _ids(lake_spark, table) == [1, 2, 3, 4]


def test_a_table_that_is_dropped_is_made_anew_by_a_way_on(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    sink = _sink(stage, stage.source("anew", {0: ROWS}), table, {})
    sink.run()
    lake_spark.sql("DROP TABLE {t}", table)

    refused = sink.fail(ExitCode.REFUSED)
    sink.run(sink.code(refused, "start_over"))

    assert _ids(lake_spark, table) == [1, 2, 3]


@pytest.mark.parametrize("harm", ["rolled back", "replaced"])
def test_a_table_that_is_rolled_back_or_replaced_is_refused(
    stage: Stage, lake_spark: LakeSpark, table: str, harm: str
) -> None:
    source = stage.source("back", {0: ROWS})
    sink = _sink(stage, source, table, {})
    sink.run()
    snapshots = lake_spark.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at", table)
    stage.produce(source, [(0, *FOURTH)])
    sink.run()
    newest = lake_spark.sql(
        "SELECT snapshot_id FROM {t}.history ORDER BY made_current_at DESC LIMIT 1", table
    )
    if harm == "rolled back":
        lake_spark.sql(
            "CALL lake.system.rollback_to_snapshot('{t}', {snapshot})", table, snapshot=snapshots[-1][0]
        )
    else:
        lake_spark.sql("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT * FROM {t} WHERE id < 3", table)
    kept = _ids(lake_spark, table)
    stage.produce(source, [(0, "k", '{"id": 5, "userid": "joe"}')])

    refused = sink.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert refused.error.primary.startswith(f'data table "{table}" is not the one that sink')
    assert f"without snapshot {newest[0][0]}" in refused.error.detail
    assert _ids(lake_spark, table) == kept
    if harm == "rolled back":  # mended: what was rolled back is rolled forward
        lake_spark.sql(
            "CALL lake.system.set_current_snapshot('{t}', {snapshot})", table, snapshot=newest[0][0]
        )
        sink.run()
        assert _ids(lake_spark, table) == [1, 2, 3, 4, 5]
    else:
        sink.run(sink.code(refused, "adopt"))
        assert _ids(lake_spark, table) == [1, 2, 5]
        sink.run()


def test_columns_that_do_not_fit_the_table_are_all_named_with_the_cast_to_write(
    stage: Stage, lake_spark: LakeSpark, table: str
) -> None:
    lake_spark.sql("CREATE NAMESPACE IF NOT EXISTS {t}", table.partition(".")[0])
    lake_spark.sql(
        "CREATE TABLE {t} (id string, usrid string, price decimal(8,2), at timestamp_ntz) USING iceberg",
        table,
    )
    sink = _sink(stage, stage.source("misfit", {0: ROWS}), table, {})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    for told in ("CAST(id AS string)", "column 'userid': is not in the table", "CAST(price AS decimal(8,2))"):
        assert told in error.detail
    assert "CAST(at AS timestamp_ntz)" in error.detail


def test_a_table_that_is_missing_is_made_only_where_the_spec_says_so(stage: Stage, table: str) -> None:
    sink = _sink(stage, stage.source("missing", {0: ROWS}), table, {"create": False})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert error.primary == f'data table "{table}" cannot be made'
    assert "create: true" in error.hint
