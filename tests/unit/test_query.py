"""What the SQL says about itself, clause by clause, and the rewritten text of row-wise queries."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.query.analysis import analyse, select_sql
from airflow_provider_sinks.core.query.rewrite import row_wise_sql
from airflow_provider_sinks.core.query.sql import SqlError, read

LOOKUPS = ("users", "places")

ROW_WISE = {
    "star": "SELECT * FROM source",
    "where": "SELECT a FROM source WHERE a > 1 AND NOT (b OR c)",
    "case-of-words": "select A from SOURCE s WHERE s.a IN (1, 2)",
    "trailing-semicolon": "SELECT a FROM source; -- and a comment",
    "nested-comments": "SELECT a /* x /* y */ z */ FROM source",
    "inner-join": "SELECT s.a, u.b FROM source s JOIN users u ON s.a = u.a",
    "left-outer-join": "SELECT a, b FROM source LEFT OUTER JOIN users USING (a)",
    "cross-join": "SELECT s.a, u.b FROM source s CROSS JOIN users u",
    "two-joins": "SELECT s.a FROM source s JOIN users u USING (a) LEFT JOIN places p ON p.x = u.x",
    "lookup-twice": "SELECT s.a FROM source s JOIN users u USING (a) JOIN users v ON v.b = s.b",
    "is-distinct-from": "SELECT a IS DISTINCT FROM b AS d FROM source",
    "extract-from": "SELECT extract(year FROM ts) AS y FROM source",
    "generator": "SELECT a, explode(b) AS c FROM source",
    "lateral-view": "SELECT a, c FROM source LATERAL VIEW explode(b) t AS c",
    "lambda": "SELECT transform(a, x -> x + 1) AS b FROM source",
    "like-any": "SELECT a LIKE ANY ('x%', 'y%') AS b FROM source",
    "nondeterministic": "SELECT rand() AS r, uuid() AS u FROM source",
    "broadcast-hint": "SELECT /*+ BROADCAST(u) */ s.a FROM source s JOIN users u USING (a)",
    "column-named-like-an-aggregate": "SELECT count, `max` FROM source",
    "aggregate-in-a-string": "SELECT 'sum(x) OVER ()' AS s FROM source",
    "multiplication": "SELECT a * b AS c FROM source",
}

NOT_ROW_WISE = {
    "aggregate": ("SELECT count(*) AS n FROM source", ["count()"]),
    "aggregate-sqlglot-does-not-know": (
        "SELECT kll_sketch_agg_bigint(a) AS n FROM source",
        ["kll_sketch_agg_bigint()"],
    ),
    "quoted-aggregate": ("SELECT `sum`(a) AS s FROM source", ["sum()"]),
    "qualified-aggregate": ("SELECT system.builtin.sum(a) AS s FROM source", ["sum()"]),
    "group-by": ("SELECT a, sum(b) AS n FROM source GROUP BY a", ["GROUP BY", "sum()"]),
    "group-by-all": ("SELECT a, max(b) AS n FROM source GROUP BY ALL", ["GROUP BY", "max()"]),
    "having": ("SELECT a FROM source GROUP BY a HAVING a > 1", ["GROUP BY", "HAVING"]),
    "time-window-first": (
        "SELECT window.start AS s, count(*) AS n FROM source GROUP BY window(ts, '1 minute')",
        ["GROUP BY", "count()", "window()"],
    ),
    "time-window-alone": ("SELECT window(ts, '1 minute') AS w FROM source", ["window()"]),
    "distinct": ("SELECT DISTINCT a FROM source", ["DISTINCT"]),
    "semi-join": ("SELECT a FROM source LEFT SEMI JOIN users USING (a)", ["LEFT SEMI JOIN"]),
    "anti-join": ("SELECT a FROM source s ANTI JOIN users u ON s.a = u.a", ["ANTI JOIN"]),
    "natural-join": ("SELECT a FROM source NATURAL JOIN users", ["NATURAL JOIN"]),
    "comma": ("SELECT s.a FROM source s, users u", ["comma in FROM"]),
    "join-in-brackets": ("SELECT s.a FROM (source s JOIN users u USING (a))", ["subquery", "FROM"]),
    "subquery-in-from": ("SELECT a FROM (SELECT a FROM source) s", ["subquery"]),
    "subquery-in-where": ("SELECT a FROM source WHERE a IN (SELECT a FROM users)", ["subquery"]),
    "scalar-subquery": ("SELECT (SELECT 1) AS a FROM source", ["subquery"]),
    "exists": ("SELECT a FROM source s WHERE EXISTS (SELECT 1 FROM users u WHERE u.a = s.a)", ["subquery"]),
    "with": ("WITH s AS (SELECT a FROM source) SELECT a FROM s", ["WITH"]),
    "lookup-first": ("SELECT s.a FROM users u JOIN source s USING (a)", ["FROM", "JOIN"]),
    "distribute-by": ("SELECT a FROM source DISTRIBUTE BY a", ["DISTRIBUTE BY"]),
    "repartition-hint": ("SELECT /*+ REPARTITION(3) */ a FROM source", ["hint REPARTITION"]),
    "alias-with-columns": ("SELECT x FROM source AS s(x, y)", ["alias with columns"]),
    "stack": ("SELECT stack(2, a, b) AS c FROM source", ["stack()"]),
    "unknown-table-generator": (
        "SELECT a FROM source LATERAL VIEW variant_explode(b) t AS c",
        ["LATERAL VIEW variant_explode"],
    ),
    "short-cast-with-commas": ("SELECT a::struct<x:int,y:int> AS s FROM source", ["text"]),
}

NEVER_ON_A_STREAM = {
    "order-by": ("SELECT a FROM source ORDER BY a", "ORDER BY"),
    "sort-by": ("SELECT a FROM source SORT BY a", "SORT BY"),
    "cluster-by": ("SELECT a FROM source CLUSTER BY a", "CLUSTER BY"),
    "limit": ("SELECT a FROM source LIMIT 1", "LIMIT"),
    "offset": ("SELECT a FROM source OFFSET 1", "OFFSET"),
    "over": ("SELECT a, sum(b) OVER (PARTITION BY a) AS s FROM source", "OVER"),
    "ranking": ("SELECT row_number() OVER (ORDER BY a) AS n FROM source", "row_number()"),
    "named-window": ("SELECT sum(b) OVER w AS s FROM source WINDOW w AS (PARTITION BY a)", "WINDOW"),
    "union": ("SELECT a FROM source UNION ALL SELECT a FROM users", "UNION"),
    "intersect": ("SELECT a FROM source INTERSECT SELECT a FROM users", "INTERSECT"),
    "except": ("SELECT a FROM source EXCEPT SELECT a FROM users", "EXCEPT"),
    "right-join": ("SELECT a FROM source RIGHT JOIN users USING (a)", "RIGHT JOIN"),
    "full-join": ("SELECT a FROM source FULL OUTER JOIN users USING (a)", "FULL JOIN"),
    "tablesample": ("SELECT a FROM source TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    "pivot": ("SELECT * FROM source PIVOT (sum(a) FOR b IN (1, 2))", "PIVOT"),
    "as-of": ("SELECT a FROM source VERSION AS OF 3", "AS OF"),
}


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in ROW_WISE.items()])
def test_row_wise(sql: str) -> None:
    plan = analyse(sql, LOOKUPS)

    assert (plan.row_wise, plan.stateful, plan.problems) == (True, False, ())


@pytest.mark.parametrize(
    ("sql", "clauses"), [pytest.param(*case, id=name) for name, case in NOT_ROW_WISE.items()]
)
def test_not_row_wise_names_the_clauses(sql: str, clauses: list[str]) -> None:
    plan = analyse(sql, LOOKUPS)

    assert [obstacle.clause for obstacle in plan.obstacles] == clauses
    assert not plan.problems


@pytest.mark.parametrize(
    ("sql", "clause"), [pytest.param(*case, id=name) for name, case in NEVER_ON_A_STREAM.items()]
)
def test_what_no_stream_can_do_is_a_problem(sql: str, clause: str) -> None:
    problems = [str(problem) for problem in analyse(sql, LOOKUPS).problems]

    assert any(problem.startswith(f"{clause} cannot run on a stream: ") for problem in problems)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        pytest.param("SELECT FROM WHERE", "is not SQL that Spark can read", id="no-sql"),
        pytest.param("SELECT a FROM source WHERE (a", "is not SQL that Spark can read", id="open-bracket"),
        pytest.param("SELECT 'a FROM source", "is not SQL that Spark can read", id="open-text"),
        pytest.param("", "holds 0 statements, not one", id="empty"),
        pytest.param("SELECT a FROM source; SELECT 1", "holds 2 statements, not one", id="two"),
        pytest.param("DROP TABLE users", "is a DROP statement, not a query", id="drop"),
        pytest.param("INSERT INTO users SELECT * FROM source", "is an INSERT statement", id="insert"),
        pytest.param("SELECT a FROM sorce", "does not read from source", id="no-source"),
        pytest.param("SELECT 1 AS a", "does not read from source", id="no-from"),
        pytest.param("SELECT a FROM source JOIN source t USING (a)", "reads 2 times from source", id="twice"),
        pytest.param("SELECT a FROM source JOIN user USING (a)", 'did you mean "users"?', id="unknown-table"),
        pytest.param("SELECT a FROM source JOIN db.users USING (a)", "reads 'db.users'", id="database"),
        pytest.param("SELECT upper(a) FROM source", "the expression UPPER(a) has no name", id="no-name"),
        pytest.param("SELECT a, b AS A FROM source", "more than one output column is named", id="same-name"),
        pytest.param("SELECT __sinks_offset FROM source", "are the sink's own", id="internal"),
        pytest.param("SELECT a AS __sinks_key FROM source", "are the sink's own", id="internal-alias"),
        pytest.param("WITH users AS (SELECT 1 AS a) SELECT a FROM source", "WITH users hides", id="hidden"),
    ],
)
def test_what_cannot_run_is_said(sql: str, problem: str) -> None:
    plan = analyse(sql, LOOKUPS)

    assert problem in "; ".join(map(str, plan.problems))
    assert not plan.row_wise


_JAVA = "calls reflect(), which no query may: it calls any Java method of the process that runs it"


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        pytest.param("SELECT reflect('a', 'b') AS x FROM source", _JAVA, id="reflect"),
        pytest.param("SELECT ReFlect /* c */\n('a', 'b') AS x FROM source", _JAVA, id="comment-and-case"),
        pytest.param("SELECT reflect\u00a0('a', 'b') AS x FROM source", _JAVA, id="odd-space"),
        pytest.param("SELECT `reflect`('a', 'b') AS x FROM source", _JAVA, id="backticks"),
        pytest.param("SELECT system.builtin.reflect('a', 'b') AS x FROM source", _JAVA, id="qualified"),
        pytest.param("SELECT transform(a, y -> reflect('a', y)) AS x FROM source", _JAVA, id="in-a-lambda"),
        pytest.param("SELECT a FROM source WHERE reflect('a', 'b') = a", _JAVA, id="in-where"),
        pytest.param("SELECT a FROM source JOIN users u ON reflect('a', 'b') = a", _JAVA, id="in-a-join"),
        pytest.param("SELECT a FROM source LATERAL VIEW reflect('a') t AS x", _JAVA, id="in-a-lateral-view"),
        pytest.param("SELECT reflect(1) AS x FROM source reflect(a, b)", _JAVA, id="alias-of-that-name"),
        pytest.param("SELECT sum(a) FILTER (WHERE reflect('a') = a) AS x FROM source", _JAVA, id="in-filter"),
        pytest.param("WITH u AS (SELECT reflect('a') AS a) SELECT a FROM source, u", _JAVA, id="in-with"),
        pytest.param(
            "SELECT java_method('a', 'b') AS x FROM source", "calls java_method(), which", id="java"
        ),
        pytest.param("SELECT try_reflect('a', 'b') AS x FROM source", "calls try_reflect(), which", id="try"),
        pytest.param("SELECT IDENTIFIER('x')(a, b) FROM source", "calls IDENTIFIER()", id="identifier"),
        pytest.param("SELECT a FROM IDENTIFIER('source')", "calls IDENTIFIER()", id="identifier-as-table"),
        pytest.param("SELECT xpath_string(a, 'b') AS x FROM source", "fetches the document type", id="xpath"),
        pytest.param("SELECT current_user AS x FROM source", "reads current_user, which no query", id="user"),
        pytest.param("SELECT current_user() AS x FROM source", "calls current_user(), which", id="user-call"),
        pytest.param("SELECT user AS x FROM source", "reads user, which no query", id="bare-user"),
        pytest.param("SELECT `User` AS user FROM source", "reads user, which no query", id="quoted-user"),
        pytest.param("SELECT `current_user` AS x FROM source", "reads current_user, which", id="quoted"),
        pytest.param("SELECT current_catalog AS x FROM source", "reads current_catalog, which", id="catalog"),
        pytest.param("SELECT a FROM source WHERE current_schema = a", "reads current_schema", id="schema"),
        pytest.param("SELECT from_xml(a, 'b int', map('c', 'd')) AS x FROM source", "options", id="options"),
        pytest.param("SELECT cat.db.upper(a) AS x FROM source", "a function of a catalog", id="of-a-catalog"),
        pytest.param("SELECT uper(a) AS x FROM source", 'did you mean "upper"?', id="misspelt"),
        pytest.param("SELECT s(1) AS x FROM source s(a, b)", "calls s(), which is no function", id="alias"),
        pytest.param("SELECT a FROM source JOIN range(3) r", "calls range(), which no query may", id="range"),
        pytest.param(
            "SELECT TRANSFORM(a) USING 'cat' AS (x) FROM source", "it would run a command", id="command"
        ),
        pytest.param("SELECT a FROM source, csv.`/etc/passwd`", "reads 'csv.`/etc/passwd`'", id="file"),
        pytest.param(
            "WITH `/x` AS (SELECT 1 AS a) SELECT s.a FROM source s, csv.`/x`",
            "reads 'csv.`/x`'",
            id="with-file",
        ),
        pytest.param("SELECT ${env:HOME} AS x FROM source", "has a parameter, ${env:HOME}", id="environment"),
        pytest.param("SELECT a FROM source WHERE a = :p", "has a parameter, :p", id="parameter"),
        pytest.param("SELECT a FROM source |> WHERE a > 0", "uses |>", id="pipe"),
        pytest.param(
            "SELECT a /* /*+ */ , reflect(1) AS x FROM source -- */\n",
            "a comment that Spark",
            id="nested-hint",
        ),
        pytest.param("SELECT a FROM source -- b \\\nWHERE a", "a comment that Spark", id="line-goes-on"),
    ],
)
def test_a_query_reaches_nothing_but_its_rows(sql: str, problem: str) -> None:
    plan = analyse(sql, LOOKUPS)

    assert problem in "; ".join(map(str, plan.problems))


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT user AS x FROM source", ["a", "User"]),
        ("SELECT source.user, s.current_schema FROM source s", None),
        ("SELECT a AS user FROM source", None),
    ],
)
def test_a_column_may_be_named_like_a_function_that_needs_no_bracket(
    sql: str, columns: list[str] | None
) -> None:
    assert not analyse(sql, (), columns).problems


def test_where_no_table_has_a_column_of_that_name_it_is_the_function() -> None:
    (problem,) = analyse("SELECT user FROM source", (), ["a", "usr"]).problems

    assert (problem.what[:10], problem.hint[-11:]) == ("reads user", "source.user")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(a AS decimal(3, 2)) AS x, a::varchar(3) AS y, a IN (1) AS i, NOT (a) AS n FROM source",
        "SELECT s.reflect, struct(s.a).a AS x FROM source s",
        "SELECT '${env:HOME} reflect(1)' AS x FROM source",
        "SELECT system.builtin.upper(a) AS x, builtin.`lower`(a) AS y FROM source",
        "SELECT from_xml(a, concat('b ', 'int')) AS x, timestampadd(DAY, 1, a) AS t FROM source",
        "SELECT CASE WHEN (a) THEN (b) ELSE (c) END AS x, a BETWEEN (1) AND (2) AS y FROM source",
        "SELECT a FROM source WHERE (a OR (b)) AND EXISTS(a, x -> x > 1) AND a LIKE ANY ('x', 'y')",
        "SELECT a /* x /* y */ */ FROM source -- why\nWHERE a > 1",
    ],
)
def test_what_only_looks_like_it_is_taken(sql: str) -> None:
    assert analyse(sql, LOOKUPS).problems == ()


@pytest.mark.parametrize(
    ("sql", "stateful"),
    [
        pytest.param("SELECT count(*) AS n FROM source", True, id="aggregate"),
        pytest.param("SELECT DISTINCT a FROM source", True, id="distinct"),
        pytest.param("SELECT listagg(a) AS l FROM source", True, id="aggregate-by-name"),
        pytest.param("WITH s AS (SELECT a FROM source) SELECT DISTINCT a FROM s", True, id="with"),
        pytest.param("SELECT a FROM (SELECT DISTINCT a FROM source) s", True, id="inside"),
        pytest.param("SELECT a FROM source LEFT SEMI JOIN users USING (a)", False, id="semi-join"),
        pytest.param("SELECT a FROM source WHERE a > (SELECT max(a) FROM users)", False, id="of-a-lookup"),
        pytest.param("WITH u AS (SELECT max(a) AS a FROM users) SELECT a FROM source JOIN u USING (a)", False,
                     id="with-of-a-lookup"),
    ],
)  # fmt: skip
def test_state_is_what_combines_rows_of_the_source(sql: str, stateful: bool) -> None:
    assert analyse(sql, LOOKUPS).stateful is stateful


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param(
            "SELECT a, s.b, c AS d, e.f, `g h` FROM source s", ("a", "b", "d", "f", "g h"), id="names"
        ),
        pytest.param("SELECT posexplode(a) AS (i, x) FROM source", ("i", "x"), id="generator"),
        pytest.param("SELECT * FROM source", ("a", "b", "c"), id="star"),
        pytest.param("SELECT *, a + 1 AS d FROM source", ("a", "b", "c", "d"), id="star-and-more"),
        pytest.param("SELECT s.* EXCEPT (B) FROM source s", ("a", "c"), id="star-except"),
        pytest.param("SELECT s.* FROM source s JOIN users u USING (a)", None, id="star-of-a-join"),
    ],
)
def test_output_columns(sql: str, columns: tuple[str, ...] | None) -> None:
    assert analyse(sql, LOOKUPS, ("a", "b", "c")).columns == columns


COLUMNS = ("id", "userid", "amount", "xs", "m", "items")
USERS = {"users": ("userid", "region")}


@pytest.mark.parametrize(
    ("sql", "unknown"),
    [
        pytest.param("SELECT usrid FROM source", "[0]: 'usrid' is no column of source", id="select"),
        pytest.param("SELECT usrid FROM source", 'did you mean "userid"?', id="nearest"),
        pytest.param("SELECT id FROM source WHERE amout > 1", "where: 'amout' is no column", id="where"),
        pytest.param("SELECT s.usrid FROM source s", "'usrid' is no column of s", id="qualified"),
        pytest.param(
            "SELECT u.regon FROM source JOIN users u USING (id)",
            "'regon' is no column of u",
            id="of-a-lookup",
        ),
        pytest.param("SELECT regon FROM source JOIN users USING (id)", "'regon' is no", id="of-both"),
        pytest.param("SELECT id FROM source JOIN users USING (usrid)", "USING: 'usrid' is no", id="using"),
        pytest.param("SELECT itms.sku FROM source", "'itms' is no column of source", id="field-of-a-struct"),
        pytest.param("SELECT filter(xs, x -> x > y) AS t FROM source", "'y' is no column", id="lambda"),
    ],
)
def test_a_column_that_no_table_has_is_named_with_the_nearest_one(sql: str, unknown: str) -> None:
    plan = analyse(sql, LOOKUPS, COLUMNS, USERS)

    assert unknown in "; ".join(map(str, plan.unknown_columns))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT amount + 1 AS a, a * 2 AS b FROM source",
        "SELECT ID, s.UserId, current_date AS d, m.a, (items[0]).sku AS sku FROM source s",
        "SELECT transform(xs, (x, i) -> x + i + id) AS t FROM source",
        "SELECT id, x FROM source LATERAL VIEW explode(xs) t AS x WHERE t.x > 1",
        "SELECT id, col FROM source LATERAL VIEW explode(xs)",
        "SELECT id, height FROM source JOIN places USING (id)",
        "SELECT p.height, s.id FROM source s JOIN places p ON p.id = s.id",
        "SELECT timestampadd(DAY, 1, id) AS t, timediff(SECOND, id, amount) AS d FROM source",
        "SELECT window.start AS s, count(*) AS n FROM source GROUP BY window(id, '1 minute')",
        "SELECT nope FROM (SELECT id AS nope FROM source) s",
    ],
)
def test_what_may_be_a_column_is_left_to_spark(sql: str) -> None:
    assert analyse(sql, LOOKUPS, COLUMNS, USERS).unknown_columns == ()


def test_a_long_list_of_values_costs_no_more_than_a_short_one() -> None:
    values = ", ".join(f"'u{number}'" for number in range(50_000))
    statement = read(f"SELECT a FROM source WHERE a IN ({values}) AND b IN (1, 2)")  # noqa: S608  never run

    assert len(statement.tokens) < 100
    assert len(list(statement.tree.walk())) < 100
    assert row_wise_sql(analyse(statement.text)).endswith("'u49999') AND b IN (1, 2)))")


def test_lookups_that_are_read() -> None:
    assert analyse("SELECT a FROM source JOIN USERS u USING (a)", LOOKUPS).lookups == ("users",)


COORDINATES = (
    "source.__sinks_topic, source.__sinks_partition, source.__sinks_offset, "
    "source.__sinks_error, source.__sinks_raw_key, source.__sinks_raw_value, "
    "source.__sinks_raw_timestamp, source.__sinks_raw_headers"
)
GOLDEN = {
    "columns": ("SELECT a, b FROM source", "SELECT a, b, COORDINATES FROM source"),
    "where-with-or": (
        "SELECT a FROM source WHERE a OR b -- why\n",
        "SELECT a, COORDINATES FROM source WHERE source.__sinks_error IS NOT NULL OR ((a OR b))",
    ),
    "star": ("SELECT * FROM source", "SELECT * EXCEPT (COORDINATES), COORDINATES FROM source"),
    "expression": (
        "SELECT concat_ws(a, ',') AS b FROM source",
        (
            "SELECT CASE WHEN source.__sinks_error IS NULL THEN (concat_ws(a, ',')) END AS b, COORDINATES "
            "FROM source"
        ),
    ),
    "aliases-without-as": (
        "SELECT a date, b + 1 timestamp, 'x' `order` FROM source",
        (
            "SELECT a date, CASE WHEN source.__sinks_error IS NULL THEN (b + 1) END timestamp, 'x' `order`, "
            "COORDINATES FROM source"
        ),
    ),
    "inner-join": (
        "SELECT s.a, u.b FROM source s INNER JOIN users AS u ON s.a = u.a OR u.b",
        (
            "SELECT /*+ BROADCAST(`u`) */ s.a, u.b, COORDINATES FROM source s LEFT JOIN users AS u "
            "ON source.__sinks_error IS NULL AND ( s.a = u.a OR u.b) "
            "WHERE source.__sinks_error IS NOT NULL OR (`u`.__sinks_matched IS NOT NULL)"
        ),
    ),
    "left-join": (
        "SELECT a, b FROM source LEFT JOIN users USING (a)",
        "SELECT /*+ BROADCAST(`users`) */ a, b, COORDINATES FROM source LEFT JOIN users USING (a)",
    ),
    "generator": (
        "SELECT explode(x) AS y FROM source",
        (
            "SELECT explode_outer(CASE WHEN source.__sinks_error IS NULL THEN (x) END) AS y, COORDINATES "
            "FROM source WHERE source.__sinks_error IS NOT NULL OR (size(x) > 0)"
        ),
    ),
}


@pytest.mark.parametrize(("sql", "expected"), [pytest.param(*case, id=name) for name, case in GOLDEN.items()])
def test_the_rewritten_text(sql: str, expected: str) -> None:
    alias = "`s`." if " s " in sql else "`source`."

    written = expected.replace("COORDINATES", COORDINATES).replace("source.", alias)

    assert row_wise_sql(analyse(sql, LOOKUPS)) == written


def test_a_query_that_is_not_row_wise_is_not_rewritten() -> None:
    with pytest.raises(ConfigurationError) as error:
        row_wise_sql(analyse("SELECT DISTINCT a FROM source"))

    assert [str(problem) for problem in error.value.problems] == [
        "DISTINCT: one output row comes from many source rows"
    ]


def test_select_and_where_are_a_query() -> None:
    assert select_sql(["a -- first", "b + 1 AS c -- more"], "a OR b") == (
        "SELECT a -- first\n  , b + 1 AS c -- more\nFROM source\nWHERE a OR b"
    )
    assert select_sql(None, None) == "SELECT *\nFROM source"


@pytest.mark.parametrize(
    ("select", "where"),
    [
        pytest.param(["a, b"], None, id="two-in-one"),
        pytest.param(["a FROM users"], None, id="from"),
        pytest.param(["a) FROM (x"], None, id="brackets"),
        pytest.param(["a"], "b GROUP BY c", id="group-by"),
        pytest.param(["a"], "b; DROP TABLE users", id="second-statement"),
        pytest.param(["DISTINCT a"], None, id="distinct"),
    ],
)
def test_an_item_is_one_expression_and_no_more(select: list[str], where: str | None) -> None:
    with pytest.raises(SqlError):
        select_sql(select, where)


@pytest.mark.parametrize(
    ("name", "multiplies"),
    [
        ("star", False),
        ("lambda", False),
        ("column-named-like-an-aggregate", False),
        ("generator", True),
        ("lateral-view", True),
        ("inner-join", True),
        ("left-outer-join", True),
        ("cross-join", True),
    ],
)
def test_a_generator_or_a_lookup_may_make_several_rows_of_one(name: str, multiplies: bool) -> None:
    assert analyse(ROW_WISE[name], LOOKUPS).may_multiply is multiplies


@pytest.mark.parametrize(
    ("sql", "generates"),
    [
        ("SELECT id, Explode (items) AS item FROM source", True),
        ("SELECT id, `inline` /* a comment */ (items) FROM source", True),
        ("SELECT stack(2, a, b) AS c FROM source", True),
        ("SELECT explode FROM source -- explode(items)", False),
    ],
)
def test_a_generator_is_known_by_its_call(sql: str, generates: bool) -> None:
    assert analyse(sql, LOOKUPS).generates is generates
