"""JSON Schemas of a registry: what they say, what is made of columns, what fits, and what may follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sinks.core.schemas.derived import Column
from airflow_provider_sinks.core.schemas.json_compatibility import same_bytes, unreadable
from airflow_provider_sinks.core.schemas.json_derived import derive, leaves_out_nulls, misfits
from airflow_provider_sinks.core.schemas.json_schema import parse
from airflow_provider_sinks.core.schemas.json_spark import spark_columns
from airflow_provider_sinks.core.schemas.json_types import JsonSchema
from airflow_provider_sinks.core.schemas.languages import key_changes
from airflow_provider_sinks.core.schemas.languages import parse as parse_as
from airflow_provider_sinks.core.schemas.languages import unreadable as unreadable_by
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
}


def order(*required: str, **properties: Any) -> JsonSchema:
    """Return the schema of an object."""
    tree = {"title": "shop.Order", "type": "object", "properties": properties, "required": list(required)}
    return parse(json.dumps(tree))


@pytest.mark.parametrize(
    ("tree", "column"),
    [
        (WHOLE, "bigint"),
        ({"type": "integer", "connect.type": "int8"}, "tinyint"),
        ({"type": "integer", "connect.type": "int16"}, "smallint"),
        ({"type": "integer", "connect.type": "int32"}, "int"),
        (NUMBER, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": "number", "connect.type": "float32"}, "float"),
        (DECIMAL, "decimal(9,2)"),
        ({"type": "boolean"}, "boolean"),
        (TEXT, "string"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date-time-local"}, "timestamp_ntz"),
        ({"type": "string", "format": "date", "enum": ["2024-02-29"]}, "string"),
        ({"type": "string", "contentEncoding": "base64"}, "binary"),
        ({"type": "string", "connect.type": "bytes"}, "binary"),
        ({"enum": ["RED", "BLUE"]}, "string"),
        ({"const": 5}, "bigint"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"oneOf": [{"type": "null"}, WHOLE], "title": "x"}, "bigint"),
        ({"anyOf": [TEXT, {"type": "null"}]}, "string"),
        ({"allOf": [{"$ref": "#/definitions/Inner"}], "description": "x"}, "struct<`a`: string>"),
        ({"type": "array", "items": WHOLE}, "array<bigint>"),
        ({"type": "object", "additionalProperties": TEXT}, "map<string,string>"),
        ({"properties": {"a`b": TEXT, "c.d": WHOLE}}, "struct<`a``b`: string,`c.d`: bigint>"),
    ],
)
def test_types_of_json_have_one_type_of_spark(tree: Any, column: str) -> None:
    inner = {"type": "object", "properties": {"a": TEXT}}
    schema = {"type": "object", "properties": {"x": tree}, "definitions": {"Inner": inner}}

    found = parse(json.dumps(schema))

    assert spark_columns(found) == (("x", column),)
    assert spark_columns(parse(found.text)) == (("x", column),)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({}, "x: takes anything, and a column has one type"),
        ({"type": ["string", "integer"]}, "x: is one of 2 types"),
        ({"oneOf": [TEXT, WHOLE]}, "x: has oneOf of 2 types"),
        ({"allOf": [TEXT, {"maxLength": 3}]}, "x: has allOf of 2 types"),
        ({"type": "array"}, "x: is an array of anything"),
        ({"type": "array", "items": [TEXT, WHOLE]}, "x: is an array of anything"),
        ({"type": "object"}, "x: is an object of anything"),
        ({"type": "array", "items": {}}, "x[]: takes anything"),
        ({"$ref": "#"}, "x: is inside itself"),
        ({"properties": {"a": TEXT, "A": TEXT}}, "x.A: is there in another case too"),
    ],
)
def test_what_no_column_holds_is_said_with_its_place(tree: Any, problem: str) -> None:
    found = parse(json.dumps({"type": "object", "properties": {"x": tree}}))

    with pytest.raises(UnfitPartsError) as unfit:
        spark_columns(found)

    assert problem in str(unfit.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "is no JSON Schema"),
        ('{"properties": {"a": {"type": "strng"}}}', "a: 'strng' is no type of JSON Schema"),
        ('{"properties": {"a": {"$ref": "b.json"}}}', "a: refers to 'b.json', which is not there"),
        ('{"properties": {"a": {"type": "integer", "enum": ["x"]}}}', "a: has values in enum or const"),
        ('{"properties": {"a": 5}}', "a: is no schema"),
        ('{"$ref": "#foo", "definitions": {"a": true}}', "refers to '#foo', which is not there"),
        ('{"$ref": "#foo", "definitions": [1]}', "refers to '#foo', which is not there"),
        (3000 * '{"items": ' + "{}" + 3000 * "}", "is nested too deep to be read"),
    ],
)
def test_a_schema_that_is_none_is_said_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(UnfitPartsError) as unfit:
        parse(text)

    assert problem in str(unfit.value)


def test_a_reference_into_a_schema_that_takes_anything_leads_nowhere() -> None:
    with pytest.raises(UnfitPartsError, match="which is not there"):
        parse('{"$ref": "b.json#foo"}', [("b.json", "true")])


def test_a_bound_that_no_number_has_is_none() -> None:
    found = parse(json.dumps({"properties": {"a": {"type": "integer", "minimum": 10**400}}}))

    assert spark_columns(found)


def test_a_schema_that_is_referred_to_over_and_over_ends() -> None:
    doubled = {
        f"d{number}": {"properties": {side: {"$ref": f"#/$defs/d{number - 1}"} for side in "ab"}}
        for number in range(1, 30)
    }
    tree = {"$ref": "#/$defs/d29", "$defs": {**doubled, "d0": TEXT}}

    with pytest.raises(UnfitPartsError, match="has more than 20,000 parts"):
        parse(json.dumps(tree))


def test_a_schema_takes_in_what_it_refers_to() -> None:
    address = {"type": "object", "properties": {"city": {"$ref": "city.json#/definitions/Name"}}}
    city = {"definitions": {"Name": {"type": "string", "maxLength": 9}}}
    tree = {"title": "O", "properties": {"to": {"$ref": "address.json"}}}
    references = [("address.json", json.dumps(address)), ("city.json", json.dumps(city))]

    found = parse(json.dumps(tree), references)

    assert spark_columns(found) == (("to", "struct<`city`: string>"),)
    assert parse(found.text).type == found.type
    assert found.name == parse(found.text).name == "O"


@pytest.mark.parametrize(
    ("keyword", "given"),
    [("pattern", "^a"), ("not", {"type": "null"}), ("uniqueItems", True), ("multipleOf", 0.5)],
)
def test_what_is_not_checked_is_refused_by_who_writes_and_left_out_by_who_reads(
    keyword: str, given: Any
) -> None:
    kind = NUMBER if keyword == "multipleOf" else {"type": "array", "items": TEXT}
    found = order(a={**(TEXT if keyword in ("pattern", "not") else kind), keyword: given})
    column = Column("a", json.loads(json.dumps(_spark_type(spark_columns(found)[0][1]))))

    [problem] = misfits([column], found)

    assert (problem.where, problem.what) == ("a", f"has {keyword} in the schema, which no row is checked by")


def _spark_type(ddl: str) -> Any:
    array = {"type": "array", "elementType": "string", "containsNull": True}
    return array if ddl.startswith("array") else ddl


COLUMNS = (
    Column("id", "long", nullable=False),
    Column("n", "integer", comment="how many"),
    Column("amount", "decimal(9,2)"),
    Column("tags", {"type": "array", "elementType": "string", "containsNull": False}),
    Column("notes", {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}),
)


def test_a_schema_is_made_of_columns() -> None:
    made = json.loads(derive(COLUMNS, "shop.Order", "Orders."))

    assert (made["title"], made["description"]) == ("shop.Order", "Orders.")
    assert made["required"] == ["id"]
    assert made["additionalProperties"] is False
    assert made["properties"]["id"] == WHOLE
    null = {"type": "null"}
    whole = {"type": "integer", "connect.type": "int32"}
    assert made["properties"]["n"] == {"oneOf": [null, whole], "description": "how many"}
    assert made["properties"]["tags"]["oneOf"][1] == {"type": "array", "items": TEXT}


def test_what_is_made_of_columns_takes_them_and_gives_them_back() -> None:
    found = parse(derive(COLUMNS, "shop.Order", ""))

    assert misfits(COLUMNS, found) == ()
    assert not leaves_out_nulls(found.type)
    assert [kind for _, kind in spark_columns(found)] == [
        "bigint",
        "int",
        "decimal(9,2)",
        "array<string>",
        "map<string,date>",
    ]


def test_columns_of_a_key_are_never_null() -> None:
    made = json.loads(derive([Column("a", "string"), Column("b", "long")], "K", "", nullable=False))

    assert made["required"] == ["a", "b"]
    assert made["properties"] == {"a": TEXT, "b": WHOLE}


def test_a_column_without_a_form_is_refused_with_the_cast() -> None:
    by_number = {"type": "map", "keyType": "integer", "valueType": "string", "valueContainsNull": True}

    with pytest.raises(UnfitPartsError) as unfit:
        derive([Column("a", "interval day"), Column("b", by_number)], "x", "")

    assert "a: is interval day, which JSON Schema has not (CAST(a AS string))" in str(unfit.value)
    assert "b: is a map by integer, and JSON Schema has maps by string" in str(unfit.value)


@pytest.mark.parametrize(
    ("column", "schema", "problem"),
    [
        (Column("a", "long"), order(a=TEXT), "a: is long, and string in the schema (CAST(a AS string))"),
        (Column("a", "string"), order(a={"type": "string", "format": "date"}), "CAST(a AS date)"),
        (Column("a", "decimal(9,3)"), order(a=DECIMAL), "CAST(a AS decimal(9,2))"),
        (Column("a", "double"), order(a={"type": "number", "connect.type": "float32"}), "CAST(a AS float)"),
        (Column("a", "long"), order(a={}), "a: takes anything, and a column has one type, in the schema"),
        (Column("b", "long"), order(bb=WHOLE), 'b: is no field of the schema (did you mean "bb"?)'),
        (Column("a", "long"), order("b", a=WHOLE, b=TEXT), "b: is required by the schema, and no column"),
        (Column("a", "long"), order("z", a=WHOLE), "z: is required by the schema, and no column"),
        (
            Column("a", "long"),
            order("b", a=WHOLE, b={"type": ["null", "string"]}),
            "b: is required and may be null, while a may be left out and never be null",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(column: Column, schema: Any, problem: str) -> None:
    assert problem in "; ".join(map(str, misfits([column], schema)))


@pytest.mark.parametrize(
    ("kind", "tree"),
    [
        ("integer", WHOLE),
        ("long", NUMBER),
        ("decimal(20,3)", NUMBER),
        ("string", {"type": ["null", "string"]}),
        ("timestamp", {"type": "string", "format": "date-time"}),
        ("binary", {"type": "string", "contentEncoding": "base64"}),
    ],
)
def test_a_column_that_loses_nothing_fits(kind: str, tree: Any) -> None:
    assert misfits([Column("a", kind)], order(a=tree)) == ()


@pytest.mark.parametrize(
    ("reader", "writer", "why"),
    [
        (order(a=TEXT), order(a=TEXT, b=WHOLE), ""),
        (order(a=TEXT, b=WHOLE), order(a=TEXT), ""),
        (order(a=NUMBER), order(a=WHOLE), ""),
        (order("b", a=TEXT, b=WHOLE), order(a=TEXT), "field b is missing in what was written"),
        (order("a", a=TEXT), order(a=TEXT), "field a may be missing in what was written"),
        (order(a=TEXT), order(a=WHOLE), "field a is written as integer and read as string"),
        (order(a=WHOLE), order(a=NUMBER), "field a is written as number and read as integer"),
        (order(a=TEXT), order(a={"type": ["null", "string"]}), "field a may be null in what was written"),
        (order(a={"enum": ["A"]}), order(a={"enum": ["A", "B"]}), "field a may be B"),
        (order(a={"enum": ["A"]}), order(a=TEXT), "field a may be anything in what was written"),
        (
            order(a={"type": "integer", "minimum": 5}),
            order(a={"type": "integer", "minimum": 4}),
            "field a has minimum 5 to the reader, and 4 in what was written",
        ),
        (
            order(a={"type": "string", "maxLength": 5}),
            order(a=TEXT),
            "field a has the largest size 5 to the reader",
        ),
        (
            order(a={"type": "string", "format": "date"}),
            order(a=TEXT),
            "field a is written as string and read as string (date)",
        ),
    ],
)
def test_what_was_written_is_read_or_said_why_not(reader: Any, writer: Any, why: str) -> None:
    found = "; ".join(unreadable(reader, writer))

    assert why in found if why else found == ""


def test_a_key_is_written_as_before_or_another_one() -> None:
    before = order("a", a=WHOLE, b=TEXT)

    assert same_bytes(order(a={"type": "integer", "maximum": 9}, b={"type": ["null", "string"]}), before)
    assert key_changes(order(b=TEXT, a=WHOLE), before) == ("the order of the fields is another one",)
    assert key_changes(order(a=NUMBER, b=TEXT), before) == ("field a was integer and is number",)
    assert key_changes(order(a=WHOLE), before) == ("field b is gone",)


def test_another_language_is_nothing_to_read() -> None:
    avro = parse_as(Format.AVRO, '{"type": "record", "name": "r", "fields": []}')

    assert unreadable_by(order(a=TEXT), avro) == ("it is Avro, and not JSON Schema",)
