"""The rewritten queries of row-wise plans, against Spark itself.

The oracle is the user's own query over plain views without internal columns: the rewritten one must give the
same columns and rows, and each record that did not parse exactly once.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.core.query.analysis import MATCHED_COLUMN, SOURCE_COLUMNS, analyse
from airflow_provider_sinks.core.query.functions import (
    AGGREGATES,
    ALLOWED,
    GENERATORS,
    ONE_ROW_GENERATORS,
    OTHER_GENERATORS,
    RANKINGS,
    REFUSED,
    SYNTAX,
)
from airflow_provider_sinks.core.query.rewrite import row_wise_sql
from tests.unit.test_ddl import NO_SCHEMAS, SCHEMAS

ROW = (
    "id int, userid string, amount int, xs array<int>, m map<string,int>, "
    "items array<struct<sku:string,n:int>>"
)
INTERNAL = (
    "__sinks_topic string, __sinks_partition int, __sinks_offset bigint, __sinks_error string, "
    "__sinks_raw_key binary, __sinks_raw_value binary, __sinks_raw_timestamp bigint, "
    "__sinks_raw_headers string"
)
GOOD: tuple[tuple[Any, ...], ...] = (
    (1, "ann", 10, [1, 2], {"a": 1}, [("s1", 1), ("s2", 2)]),
    (2, "bob", 0, [], {}, []),
    (3, "zoe", -5, None, None, None),
    (4, None, None, [None, 7], {"a": None, "b": 2}, [None, ("s3", 3)]),
    (5, "ann", 3, [9], {"c": 3}, [("s4", None)]),
    (None, None, None, None, None, None),  # a tombstone, or {}: nulls without an error
)
SPOILT = 3
USERS = (
    ("ann", "north", 1),
    ("ann", "south", 2),
    ("bob", "west", None),
    (None, "nowhere", 0),
    ("new", "east", 5),
)
PLACES = (("north", 0), ("west", 3), ("west", 4))


# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")


@pytest.fixture(scope="module")
def spark(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    folder = tmp_path_factory.mktemp("tables")
    for name, table in tables(spark_session).items():
        table.coalesce(1).write.parquet(f"{folder}/{name}")
        spark_session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(f"stored_{name}")
    return spark_session


def tables(spark: SparkSession) -> dict[str, DataFrame]:
    good = [(*row, "t", 0, offset, None, b"k", b"v", 7, None) for offset, row in enumerate(GOOD)]
    spoilt = [(*[None] * 6, "t", 0, 100 + n, "no JSON", b"key", b"value", 7, "[]") for n in range(SPOILT)]
    return {
        "source": spark.createDataFrame([*good, *spoilt], f"{ROW}, {INTERNAL}"),
        "users": spark.createDataFrame(USERS, "userid string, region string, score int"),
        "places": spark.createDataFrame(PLACES, "region string, height int"),
    }


def run_plain(spark: SparkSession, sql: str, rows: str = "__sinks_error IS NULL") -> DataFrame:
    spark.table("stored_source").where(rows).drop(*SOURCE_COLUMNS).createOrReplaceTempView("source")
    for name in ("users", "places"):
        spark.table(f"stored_{name}").createOrReplaceTempView(name)
    return spark.sql(sql)


def run_row_wise(spark: SparkSession, sql: str) -> DataFrame:
    spark.table("stored_source").createOrReplaceTempView("source")
    for name in ("users", "places"):
        view = spark.table(f"stored_{name}").selectExpr("*", f"true AS {MATCHED_COLUMN}")
        view.createOrReplaceTempView(name)
    return spark.sql(row_wise_sql(analyse(sql, ["users", "places"])))


def shuffles(found: DataFrame) -> bool:
    """Tell whether rows leave the partition that they came from."""
    plan = found._jdf.queryExecution().executedPlan().toString()
    return "Exchange" in plan.replace("BroadcastExchange", "")


def counted(rows: list[Any], width: int) -> Counter[str]:
    return Counter(repr(tuple(row)[:width]) for row in rows)


QUERIES = {
    "star": "SELECT * FROM source",
    "star-of-alias": "SELECT s.* FROM source AS s",
    "star-except": "SELECT * EXCEPT (xs, m) FROM source",
    "star-and-more": "SELECT *, amount * 2 AS twice FROM source;",
    "stars-in-functions": "SELECT id, to_json(struct(*)) AS j, struct(s.* EXCEPT (m)) AS r FROM source s",
    "columns": "SELECT id, userid FROM source",
    "quoted-names": "SELECT `id` AS `the id`, s.`userid` AS `se``lect` FROM source `s`",
    "aliases-without-as": "SELECT id date, amount + 1 timestamp, 'x' `order` FROM source; -- end",
    "case-of-names": "select S.ID, UserId from SOURCE s",
    "comments": (
        "-- first\nSELECT id, -- the id\n amount /* a */ AS a -- last\nFROM source -- from\nWHERE "
        "id > 1 -- end"
    ),
    "strings": "SELECT 'FROM, source WHERE \\' x' AS a, \"b,(\" AS b FROM source WHERE userid <> 'x -- y'",
    "where": "SELECT id FROM source WHERE amount > 0",
    "where-or": "SELECT id FROM source WHERE amount > 5 OR userid = 'bob' AND amount = 0",
    "where-is-distinct-from": (
        "SELECT id, amount IS DISTINCT FROM 0 AS d FROM source WHERE userid IS DISTINCT FROM 'x'"
    ),
    "where-that-would-fail": "SELECT 100 / coalesce(id, 0) AS r FROM source WHERE coalesce(id, 0) <> 0",
    "no-row-passes": "SELECT id FROM source WHERE false",
    "constants": "SELECT 1 AS one, NULL AS nothing, current_date() IS NULL AS never FROM source",
    "asserting": "SELECT assert_true(id IS NOT NULL) AS a, id FROM source WHERE id IS NOT NULL",
    "case-when": (
        "SELECT CASE WHEN id IS NULL THEN raise_error('no id') ELSE id END AS i FROM source WHERE id > 0"
    ),
    "lateral-alias": "SELECT amount + 1 AS a, a * 2 AS b, id FROM source",
    "struct-fields": "SELECT get(items, 0).sku AS first, named_struct('a', id).a AS a FROM source",
    "higher-order": "SELECT transform(xs, x -> x + 1) AS ys, exists(xs, x -> x > 1) AS e FROM source",
    "left-join": "SELECT s.id, u.region FROM source s LEFT JOIN users u ON s.userid = u.userid",
    "left-join-using": "SELECT id, userid, region FROM source LEFT OUTER JOIN users USING (userid)",
    "left-join-on-or": (
        "SELECT id, region FROM source s LEFT JOIN users u ON s.userid = u.userid OR u.score = s.id"
    ),
    "left-join-on-always": "SELECT id, region FROM source s LEFT JOIN users u ON true",
    "left-join-where": (
        "SELECT id, region FROM source s LEFT JOIN users u USING (userid) WHERE u.score IS NULL"
    ),
    "inner-join": "SELECT s.id, u.region FROM source s JOIN users u ON s.userid = u.userid",
    "inner-join-using-star": "SELECT * FROM source INNER JOIN users USING (userid)",
    "inner-join-stars": "SELECT u.* EXCEPT (userid), s.* FROM source s JOIN users u USING (userid)",
    "inner-join-where-or": (
        "SELECT id, region FROM source s JOIN users u USING (userid) WHERE score = 1 OR amount = 0"
    ),
    "inner-join-null-safe": "SELECT s.id, u.region FROM source s JOIN users u ON s.userid <=> u.userid",
    "inner-join-left-function": (
        "SELECT s.id, u.region FROM source s JOIN users u ON left(s.userid, 1) = left(u.userid, 1)"
    ),
    "inner-join-that-would-fail": (
        "SELECT 1 / score AS r FROM source s JOIN users u USING (userid) WHERE u.score <> 0"
    ),
    "cross-join": "SELECT s.id, u.region FROM source s CROSS JOIN users u",
    "cross-join-star": "SELECT * FROM source s CROSS JOIN users u WHERE s.userid = u.userid",
    "join-without-on": "SELECT s.id, u.region FROM source s JOIN users u",
    "two-joins": (
        "SELECT s.id, u.region, p.height FROM source s JOIN users u ON s.userid = u.userid "
        "LEFT JOIN places p ON u.region = p.region"
    ),
    "two-inner-joins": (
        "SELECT s.id, p.height FROM source s JOIN users u USING (userid) JOIN places p USING (region) "
        "WHERE p.height > 0 OR s.id = 1"
    ),
    "join-after-unmatched": (
        "SELECT s.id, p.height FROM source s JOIN users u ON s.userid = u.userid "
        "JOIN places p ON 10 / u.score > p.height"
    ),
    "two-joins-star": "SELECT * FROM source s LEFT JOIN users u USING (userid) CROSS JOIN places p",
    "one-lookup-twice": (
        "SELECT a.region AS r1, b.region AS r2 FROM source s JOIN users a USING (userid) "
        "LEFT JOIN users b ON b.score = s.id"
    ),
    "explode": "SELECT id, explode(xs) AS x FROM source",
    "explode-map": "SELECT id, explode(m) AS (k, v) FROM source WHERE id > 0 OR id IS NULL",
    "explode-outer": "SELECT id, explode_outer(xs) AS x, amount + 1 AS a FROM source",
    "posexplode": "SELECT posexplode(xs) AS (i, x), userid FROM source",
    "inline": "SELECT id, inline(items) AS (sku, n) FROM source",
    "inline-outer": "SELECT id, inline_outer(items) AS (sku, n) FROM source",
    "json-tuple": "SELECT id, json_tuple(to_json(struct(id, userid)), 'id', 'userid') AS (i, u) FROM source",
    "explode-same-name": "SELECT explode(xs) AS xs FROM source",
    "lateral-view": "SELECT id, x FROM source LATERAL VIEW explode(xs) t AS x",
    "lateral-view-outer": (
        "SELECT id, k, v FROM source s LATERAL VIEW OUTER explode(s.m) t AS k, v WHERE id < 5"
    ),
    "lateral-views": (
        "SELECT id, i.sku, x FROM source LATERAL VIEW explode(items) t AS i "
        "LATERAL VIEW posexplode(xs) t2 AS p, x WHERE i.n > 0 OR i.n IS NULL"
    ),
    "lateral-view-of-view": (
        "SELECT id, y FROM source LATERAL VIEW explode(array(xs, xs)) t AS ys LATERAL VIEW "
        "explode(ys) t2 AS y"
    ),
    "lateral-view-after-join": (
        "SELECT id, region, x FROM source JOIN users ON id = score LATERAL VIEW explode(xs) t AS x"
    ),
    "hint-of-the-user": (
        "SELECT /*+ BROADCAST(u) */ s.id, u.region FROM source s LEFT JOIN users u USING (userid)"
    ),
    "select-all": "SELECT ALL id FROM source",
}


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in QUERIES.items()])
def test_a_rewritten_query_gives_what_the_written_one_does(spark: SparkSession, sql: str) -> None:
    expected = run_plain(spark, sql)
    expected_rows, columns = expected.collect(), expected.columns

    found = run_row_wise(spark, sql)
    rows = found.collect()

    assert found.columns == [*columns, *SOURCE_COLUMNS]
    assert [kind for _, kind in found.dtypes][: len(columns)] == [kind for _, kind in expected.dtypes]
    good = [row for row in rows if row["__sinks_error"] is None]
    assert counted(good, len(columns)) == counted(expected_rows, len(columns))
    spoilt = sorted(tuple(row)[-8:] for row in rows if row["__sinks_error"] is not None)
    assert spoilt == [("t", 0, 100 + n, "no JSON", b"key", b"value", 7, "[]") for n in range(SPOILT)]
    assert not shuffles(found)


@pytest.mark.parametrize(
    "name", ["inner-join-stars", "lateral-views", "explode-map", "two-inner-joins", "cross-join"]
)
def test_coordinates_are_those_of_the_row_that_led_to_the_output(spark: SparkSession, name: str) -> None:
    found = run_row_wise(spark, QUERIES[name]).where("__sinks_error IS NULL").collect()

    for offset in range(len(GOOD)):
        expected = run_plain(spark, QUERIES[name], f"__sinks_offset = {offset}").collect()
        width = len(expected[0]) if expected else 1
        own = [out for out in found if out["__sinks_offset"] == offset]

        assert len(own) == len(expected)
        assert counted(own, width) == counted(expected, width)


def test_the_lists_of_functions_are_those_of_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    infos = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    groups: dict[str, set[str]] = {}
    for info in infos:
        groups.setdefault(info.getGroup(), set()).add(info.getName())

    assert groups["agg_funcs"] == set(AGGREGATES)
    assert groups["window_funcs"] == RANKINGS
    assert groups["generator_funcs"] - set(REFUSED) == set(GENERATORS) | OTHER_GENERATORS
    assert groups["json_funcs"] >= ONE_ROW_GENERATORS


def test_each_function_of_spark_is_allowed_or_refused_with_a_reason(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    infos = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    names = {info.getName() for info in infos}

    assert {name for name in names if re.fullmatch(r"\w+", name)} == (ALLOWED - SYNTAX) | set(REFUSED)
    assert not ALLOWED & set(REFUSED)


STRICTER = ("types are nested", "column 'A' stands twice")
"""What Spark takes, or takes here, and we do not."""

STREAMS = {
    "aggregate": ("SELECT count(*) AS n FROM source", True),
    "group-by": ("SELECT value, count(*) AS n FROM source GROUP BY value", True),
    "group-by-window": (
        "SELECT window.start AS s, count(*) AS n FROM source GROUP BY window(timestamp, '1 minute')",
        True,
    ),
    "having": ("SELECT value FROM source GROUP BY value HAVING count(*) > 1", True),
    "distinct": ("SELECT DISTINCT value FROM source", True),
    "semi-join": ("SELECT value FROM source LEFT SEMI JOIN users ON value = score", True),
    "anti-join": ("SELECT value FROM source LEFT ANTI JOIN users ON value = score", True),
    "subquery": ("SELECT value FROM (SELECT value FROM source) s", True),
    "with": ("WITH s AS (SELECT value FROM source) SELECT value FROM s", True),
    "in-subquery": ("SELECT value FROM source WHERE value IN (SELECT score FROM users)", True),
    "comma": ("SELECT value, score FROM source, users", True),
    "distribute-by": ("SELECT value FROM source DISTRIBUTE BY value", True),
    "cluster-by": ("SELECT value FROM source CLUSTER BY value", False),
    "order-by": ("SELECT value FROM source ORDER BY value", False),
    "sort-by": ("SELECT value FROM source SORT BY value", False),
    "limit": ("SELECT value FROM source LIMIT 1", False),
    "offset": ("SELECT value FROM source OFFSET 1", False),
    "over": ("SELECT value, sum(value) OVER (PARTITION BY value ORDER BY timestamp) AS s FROM source", False),
    "ranking": (
        "SELECT value, row_number() OVER (PARTITION BY value ORDER BY timestamp) AS s FROM source",
        False,
    ),
    "union": ("SELECT value FROM source UNION ALL SELECT score AS value FROM users", False),
    "right-join": ("SELECT value FROM source RIGHT JOIN users ON value = score", False),
    "full-join": ("SELECT value FROM source FULL JOIN users ON value = score", False),
    "intersect": ("SELECT value FROM source INTERSECT SELECT score AS value FROM users", False),
    "pivot": ("SELECT * FROM source PIVOT (count(timestamp) FOR value IN (1 AS a, 2 AS b))", False),
    "tablesample": ("SELECT value FROM source TABLESAMPLE (50 PERCENT)", False),
}


@pytest.mark.parametrize(
    ("sql", "runs"), [pytest.param(sql, runs, id=name) for name, (sql, runs) in STREAMS.items()]
)
def test_what_cannot_run_on_a_stream_is_what_spark_refuses(spark: SparkSession, sql: str, runs: bool) -> None:
    spark.readStream.format("rate").load().createOrReplaceTempView("source")
    spark.table("stored_users").createOrReplaceTempView("users")

    assert starts(spark, sql) is runs
    assert (not analyse(sql, ["users"]).problems) is runs


def starts(spark: SparkSession, sql: str) -> bool:
    try:
        query = spark.sql(sql).writeStream.format("noop").outputMode("update").start()
        query.stop()
    except AnalysisException:
        return False
    return True


@pytest.mark.parametrize(("ddl", "columns"), SCHEMAS)
def test_schemas_mean_the_same_to_spark(spark: SparkSession, ddl: str, columns: tuple[str, ...]) -> None:
    jvm: Any = spark._jvm

    assert tuple(jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl).fieldNames()) == columns


@pytest.mark.parametrize("ddl", [ddl for ddl, problem, _ in NO_SCHEMAS if not problem.startswith(STRICTER)])
def test_what_is_no_schema_is_none_to_spark(spark: SparkSession, ddl: str) -> None:
    jvm: Any = spark._jvm

    with pytest.raises(AnalysisException):
        jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
