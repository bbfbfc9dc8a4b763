"""Schemas in Spark's DDL: the columns, and what is misspelt."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.spec.ddl import columns_of
from airflow_provider_sinks.core.spec.problems import UnfitError

SCHEMAS: list[tuple[str, tuple[str, ...]]] = [
    ("a int", ("a",)),
    ("viewtime LONG, userid string ,pageid\n  String", ("viewtime", "userid", "pageid")),
    ("a struct<b: int, c:string>", ("a",)),
    ("`a b` int, `c``d` string", ("a b", "c`d")),
    ("a decimal(10, 2), b varchar(5), c timestamp_ntz", ("a", "b", "c")),
    ("a array<map<string, struct<b: int, c: array<date>>>>, d double", ("a", "d")),
    ("a struct<b int, c string NOT NULL COMMENT 'x, y'> NOT NULL, d binary COMMENT 'it\\'s'", ("a", "d")),
    ("a string COLLATE UTF8_LCASE, b variant, c interval day to second", ("a", "b", "c")),
    ("a int, -- the first\n b int", ("a", "b")),
    ("int int, struct struct<array: array<int>>", ("int", "struct")),
    ("a struct<>, b int", ("a", "b")),
]


@pytest.mark.parametrize(("ddl", "columns"), SCHEMAS)
def test_columns(ddl: str, columns: tuple[str, ...]) -> None:
    assert columns_of(ddl) == columns


NO_SCHEMAS: list[tuple[str, str, str]] = [
    ("a strng", "'strng' is not a type of Spark", 'did you mean "string"?'),
    ("a array<innt>", "'innt' is not a type of Spark", 'did you mean "int"?'),
    ("a: int", "':' is not a type of Spark", ""),
    ("a", "the last column has no type", "name type, name type, …"),
    ("", "expected", "name type, name type, …"),
    ("a int,", "expected", "name type, name type, …"),
    ("a int b string", "expected ,, found 'b'", "name type, name type, …"),
    ("a map<string>", "expected ,, found '>'", "name type, name type, …"),
    ("a array<int", "expected >, found the end", "name type, name type, …"),
    ("a array", "expected <, found the end", "name type, name type, …"),
    ("a decimal(10", "found the end", "name type, name type, …"),
    ("a int; drop", "'; drop' cannot be read", "name type, name type, …"),
    ("a int, A string", "column 'A' stands twice", ""),
    ('{"type": "struct"}', "cannot be read", "name type, name type, …"),
    ("a " + "array<" * 60 + "int" + ">" * 60, "types are nested too deeply", ""),
]


@pytest.mark.parametrize(("ddl", "problem", "hint"), NO_SCHEMAS)
def test_what_is_no_schema(ddl: str, problem: str, hint: str) -> None:
    with pytest.raises(UnfitError) as error:
        columns_of(ddl)

    assert problem in str(error.value)
    assert error.value.hint == hint
