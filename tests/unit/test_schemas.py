"""Schemas of a registry: names, types, what is made of columns, what fits, and what may follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sinks.core.schemas.avro import parse
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.compatibility import same_bytes, unreadable
from airflow_provider_sinks.core.schemas.derived import Column, derive, misfits
from airflow_provider_sinks.core.schemas.languages import key_changes, why_not_next
from airflow_provider_sinks.core.schemas.levels import Level
from airflow_provider_sinks.core.schemas.plan import (
    NewestVersion,
    SchemaState,
    SubjectFacts,
    plan,
)
from airflow_provider_sinks.core.schemas.spark_types import spark_columns
from airflow_provider_sinks.core.schemas.subjects import Part, check_naming, subject
from airflow_provider_sinks.core.schemas.wire import header
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.core.spec.schema_options import AutoRegister

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def order(**fields: Any) -> AvroSchema:
    """Return the schema of a record; null in front is the default."""
    made = [
        {
            "name": key,
            "type": kind,
            **({"default": None} if isinstance(kind, list) and kind[0] == "null" else {}),
        }
        for key, kind in fields.items()
    ]
    return parse(json.dumps({"type": "record", "name": "shop.Order", "fields": made}))


@pytest.mark.parametrize(
    ("schema_id", "written"), [(0, "0000000000"), (258, "0000000102"), (2**31 - 1, "007fffffff")]
)
def test_a_value_begins_with_a_zero_and_its_schema_id(schema_id: int, written: str) -> None:
    assert header(schema_id).hex() == written


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_what_is_no_id_is_not_written(schema_id: int) -> None:
    with pytest.raises(ValueError, match="is no id of a schema"):
        header(schema_id)


@pytest.mark.parametrize(
    ("naming", "name"),
    [
        ("topic_name", "orders-value"),
        ("record_name", "shop.Order"),
        ("topic_record_name", "orders-shop.Order"),
        ("prod.{topic}.{part}", "prod.orders.value"),
        ("{record}", "shop.Order"),
    ],
)
def test_a_subject_is_named_as_the_spec_says(naming: str, name: str) -> None:
    assert subject(check_naming(naming), "orders", Part.VALUE, "shop.Order") == name


@pytest.mark.parametrize(
    ("naming", "what"),
    [
        ("topicname", "names no subjects"),
        ("{topik}-value", "{topik} stands for nothing"),
        ("{topic", "names no subjects"),
        ("orders", "names no subjects"),
    ],
)
def test_a_naming_that_names_nothing_is_refused(naming: str, what: str) -> None:
    with pytest.raises(UnfitError, match=what):
        check_naming(naming)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ('{"type": "record", "name": "r"', "is not JSON"),
        ({"type": "record", "name": "bad name", "fields": []}, "'bad name' is no name in Avro"),
        ({"type": "record", "name": "r", "fields": [{"name": "1a", "type": "int"}]}, "1a: '1a' is no name"),
        ({"type": "record", "name": "r", "fields": [{"name": "a", "type": "lng"}]}, 'did you mean "long"?'),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "default": "x"}]},
            'a: default "x" does not fit: it is no int',
        ),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": ["int", "null"], "default": None}],
            },
            "a: default null does not fit: it is no int",
        ),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "int"]}]},
            "a: is a union with int twice",
        ),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}],
            },
            "a: stands twice",
        ),
        ({"type": "enum", "name": "e", "symbols": ["A", "b c"]}, "'b c' is no symbol"),
        (
            {"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 9},
            "9 digits do not fit into 2 bytes (at most 4)",
        ),
    ],
)
def test_a_schema_that_is_none_is_said_with_its_place(tree: Any, problem: str) -> None:
    with pytest.raises(UnfitPartsError) as error:
        parse(tree if isinstance(tree, str) else json.dumps(tree))
    assert problem in str(error.value)


def _doubled(levels: int) -> Any:
    """Return a record that stands for twice as many parts with each level."""
    made: Any = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, levels):
        fields = [{"name": "a", "type": made}, {"name": "b", "type": f"R{level - 1}"}]
        made = {"type": "record", "name": f"R{level}", "fields": fields}
    return made


def _inside_each_other_by_name(levels: int) -> Any:
    fields: list[Any] = [{"name": "f0", "type": {"type": "record", "name": "R0", "fields": []}}]
    for level in range(1, levels):
        inner = [{"name": "x", "type": f"R{level - 1}"}]
        fields.append({"name": f"f{level}", "type": {"type": "record", "name": f"R{level}", "fields": inner}})
    return {"type": "record", "name": "Whole", "fields": fields}


def _arrays(levels: int) -> str:
    return levels * '{"type": "array", "items": ' + '"int"' + levels * "}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (_arrays(600), "more than 100 types inside each other"),
        (_arrays(3000), "is nested too deep to be read"),
        (json.dumps(_inside_each_other_by_name(600)), "more than 100 types inside each other"),
        (json.dumps(_doubled(30)), "has more than 50,000 parts"),
    ],
    ids=["deep", "too deep for JSON", "deep by names", "over and over"],
)
def test_a_schema_without_end_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnfitPartsError, match=problem):
        parse(text)


def test_a_schema_may_have_thousands_of_fields() -> None:
    kind = ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9}]

    found = order(**{f"f{number}": kind for number in range(5000)})

    assert len(spark_columns(found)) == 5000


def test_a_schema_takes_in_what_it_refers_to() -> None:
    address = {"type": "record", "name": "shop.Address", "fields": [{"name": "c", "type": "int"}]}
    fields = [{"name": "a", "type": "Address"}, {"name": "b", "type": "shop.Address"}]
    text = json.dumps({"type": "record", "name": "shop.O", "fields": fields})

    found = parse(text, [json.dumps(address)])

    assert parse(found.text).type == found.type
    assert spark_columns(found) == (("a", "struct<`c`: int>"), ("b", "struct<`c`: int>"))


def test_types_of_avro_have_one_type_of_spark() -> None:
    fixed = {"type": "fixed", "name": "f", "size": 3}
    found = spark_columns(
        order(
            a={"type": "long", "logicalType": "timestamp-millis"},
            b={"type": "string", "logicalType": "uuid"},
            c=DECIMAL,
            d=["null", fixed],
            e={"type": "array", "items": ["null", "int"]},
            f={"type": "map", "values": {"type": "enum", "name": "e", "symbols": ["A"]}},
            g=["int", "long"],
            h={"type": "long", "logicalType": "local-timestamp-micros"},
        )
    )

    kinds = "timestamp string decimal(10,2) binary array<int> map<string,string> bigint timestamp_ntz"
    assert [kind for _, kind in found] == kinds.split()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (["null", "shop.Order"], "a: is shop.Order inside itself"),
        (["int", "string"], "a: is a union of 2 types"),
        ("null", "a: is always null"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "a: has 39 digits, and Spark has 38"),
    ],
)
def test_what_spark_cannot_hold_is_refused(kind: Any, problem: str) -> None:
    with pytest.raises(UnfitPartsError, match=problem):
        spark_columns(order(a=kind))


def test_a_schema_is_made_of_columns_with_docs_defaults_and_logical_types() -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}]}
    columns = [
        Column("id", "long", nullable=False),
        Column("amount", "decimal(10,2)", comment="in euro"),
        Column("at", "timestamp", nullable=False),
        Column("day", "date", nullable=False),
        Column("local", "timestamp_ntz", nullable=False),
        Column("small", "byte", nullable=False),
        Column("many", {"type": "array", "elementType": inner, "containsNull": False}, nullable=False),
    ]

    tree = json.loads(derive(columns, "shop.Order", "Orders."))

    assert (tree["namespace"], tree["name"], tree["doc"]) == ("shop", "Order", "Orders.")
    assert tree["fields"] == [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": ["null", DECIMAL], "default": None, "doc": "in euro"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "small", "type": "int"},
        {
            "name": "many",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Order_many",
                    "namespace": "shop",
                    "fields": [{"name": "x", "type": "long"}],
                },
            },
        },
    ]
    assert misfits(columns, parse(json.dumps(tree))) == ()


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (Column("a b", "long"), "a b: 'a b' is no name in Avro (name it otherwise, such as AS a_b)"),
        (Column("v", "variant"), "v: is variant, which Avro has not (CAST(v AS string))"),
        (Column("n", "void"), "n: is void, which Avro has not (CAST(n AS string))"),
        (
            Column("m", {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}),
            "m: is a map by long, and Avro has maps by string (CAST(m AS map<string, ...>))",
        ),
    ],
)
def test_a_column_without_a_form_in_avro_is_refused_with_its_cast(column: Column, problem: str) -> None:
    with pytest.raises(UnfitPartsError) as error:
        derive([column], "r", "")
    assert str(error.value) == problem


@pytest.mark.parametrize(
    ("column", "kind", "problem"),
    [
        (Column("a", "integer"), "long", "a: is integer, and long in the schema (CAST(a AS bigint))"),
        (Column("a", "long"), "int", "a: is long, and int in the schema (CAST(a AS int))"),
        (Column("a", "timestamp"), "long", "a: is timestamp, and long in the schema (CAST(a AS bigint))"),
        (
            Column("a", "decimal(10,3)"),
            DECIMAL,
            "a: is decimal(10,3), and decimal(10,2) in the schema (CAST(a AS decimal(10,2)))",
        ),
        (
            Column("a", "long"),
            ["long", "string"],
            "a: is long or string in the schema, and a column has one type",
        ),
        (
            Column("b", "long"),
            ["null", "long"],
            "b: is no field of the schema (leave it out; fields: a)",
        ),
    ],
)
def test_a_column_that_does_not_fit_is_refused_with_the_cast_to_write(
    column: Column, kind: Any, problem: str
) -> None:
    assert [str(one) for one in misfits([column], order(a=kind))] == [problem]


def test_a_field_without_a_column_must_be_nullable() -> None:
    schema = order(a="long", b="long", c=["null", "long"])

    assert [str(one) for one in misfits([Column("a", "long")], schema)] == [
        "b: is required by the schema, and no column gives it (add ... AS b)"
    ]


@pytest.mark.parametrize(
    ("new", "old", "level", "reasons"),
    [
        ({"a": "long"}, {"a": "int"}, Level.BACKWARD, ()),
        (
            {"a": "int"},
            {"a": "long"},
            Level.BACKWARD,
            ("field a is written as long and read as int (for readers of the new schema)",),
        ),
        ({"a": "int"}, {"a": "long"}, Level.NONE, ()),
        ({"a": "long", "b": ["null", "int"]}, {"a": "long"}, Level.FULL, ()),
        (
            {"a": "long", "b": "int"},
            {"a": "long"},
            Level.FULL,
            ("field b is missing in what was written, and has no default (for readers of the new schema)",),
        ),
        (
            {"a": "long"},
            {"a": "long", "b": "int"},
            Level.FORWARD_TRANSITIVE,
            ("field b is missing in what was written, and has no default (for readers of the old schema)",),
        ),
        ({"a": ["null", "long"]}, {"a": "long"}, Level.BACKWARD, ()),
    ],
)
def test_a_schema_may_follow_or_it_is_said_which_field_is_in_the_way(
    new: dict[str, Any], old: dict[str, Any], level: Level, reasons: tuple[str, ...]
) -> None:
    assert why_not_next(order(**new), order(**old), level) == reasons


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a type that stands for more."""
    return {"type": kind, "logicalType": name, **more}


def cents(scale: int, **on: Any) -> dict[str, Any]:
    """Return a decimal, on bytes or on so many of them."""
    return {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale, **on}


FIXED = {"type": "fixed", "name": "Amount", "size": 8}
COUNTED = {
    "days": logical("int", "date"),
    "milliseconds of a day": logical("int", "time-millis"),
    "microseconds of a day": logical("long", "time-micros"),
    "milliseconds": logical("long", "timestamp-millis"),
    "microseconds": logical("long", "timestamp-micros"),
    "local milliseconds": logical("long", "local-timestamp-millis"),
    "local microseconds": logical("long", "local-timestamp-micros"),
    "cents": cents(2),
    "thousandths": cents(3),
    "cents of more digits": cents(2, precision=12),
    "cents on fixed": cents(2, **FIXED),
    "thousandths on fixed": cents(3, **FIXED),
    "an int": "int",
    "a long": "long",
    "bytes": "bytes",
    "fixed": FIXED,
}


@pytest.mark.parametrize("writes", COUNTED)
@pytest.mark.parametrize("reads", COUNTED)
@pytest.mark.parametrize("nullable", [True, False])
def test_what_a_number_counts_must_be_the_same_for_who_wrote_and_who_reads(
    reads: str, writes: str, *, nullable: bool
) -> None:
    reader, writer = COUNTED[reads], COUNTED[writes]
    is_read = reads == writes or (writes, reads) == ("an int", "a long")

    found = unreadable(order(at=["null", reader] if nullable else reader), order(at=writer))

    assert (not found) is is_read
    assert all(why.startswith("field at is written as ") for why in found)


@pytest.mark.parametrize(
    ("reader", "writer", "why"),
    [
        (
            COUNTED["microseconds"],
            COUNTED["milliseconds"],
            "written as long (timestamp-millis) and read as long (timestamp-micros)",
        ),
        (COUNTED["cents"], COUNTED["thousandths"], "written as decimal(10,3) and read as decimal(10,2)"),
        (
            COUNTED["cents on fixed"],
            COUNTED["thousandths on fixed"],
            "written as decimal(10,3) on 8 bytes and read as decimal(10,2) on 8 bytes",
        ),
        (COUNTED["milliseconds"], "long", "written as long and read as long (timestamp-millis)"),
    ],
)
def test_it_is_said_what_was_counted_and_what_is_read(reader: Any, writer: Any, why: str) -> None:
    assert unreadable(order(at=reader), order(at=writer)) == (f"field at is {why}",)


def test_a_record_inside_itself_is_compared_to_an_end() -> None:
    tree = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}

    assert unreadable(parse(json.dumps(tree)), parse(json.dumps(tree))) == ()


def test_a_key_must_be_written_as_before() -> None:
    assert same_bytes(order(a="long"), order(a="long"))
    assert key_changes(order(a="long", b=["null", "long"]), order(a="long")) == ("field b is new",)
    assert key_changes(order(a="string"), order(a="long")) == ("field a was long and is string",)
    assert key_changes(order(b="int", a="int"), order(a="int", b="int")) == (
        "the order of the fields is another one",
    )


OLD = NewestVersion(7, 3, order(a="long"))


@pytest.mark.parametrize(
    ("part", "new", "facts", "register", "state"),
    [
        (Part.VALUE, order(a="long"), SubjectFacts(Level.FULL), AutoRegister.TRUE, SchemaState.NEW),
        (Part.VALUE, order(a="long"), SubjectFacts(Level.FULL), AutoRegister.FALSE, SchemaState.MISSING),
        (
            Part.VALUE,
            OLD.schema,
            SubjectFacts(Level.FULL, OLD, 7),
            AutoRegister.FALSE,
            SchemaState.REGISTERED,
        ),
        (
            Part.VALUE,
            order(a="int"),
            SubjectFacts(Level.NONE, OLD),
            AutoRegister.TRUE,
            SchemaState.COMPATIBLE,
        ),
        (
            Part.VALUE,
            order(a="int"),
            SubjectFacts(Level.NONE, OLD),
            AutoRegister.CHECK,
            SchemaState.INCOMPATIBLE,
        ),
        (
            Part.VALUE,
            order(a="int"),
            SubjectFacts(Level.BACKWARD, OLD, takes=False),
            AutoRegister.TRUE,
            SchemaState.INCOMPATIBLE,
        ),
        (
            Part.KEY,
            order(a="long", b=["null", "long"]),
            SubjectFacts(Level.FULL, OLD),
            AutoRegister.TRUE,
            SchemaState.INCOMPATIBLE,
        ),
    ],
)
def test_a_start_knows_what_it_would_do_about_a_schema(
    part: Part, new: AvroSchema, facts: SubjectFacts, register: AutoRegister, state: SchemaState
) -> None:
    found = plan(part, "orders-value", new.text, new, facts=facts, register=register)

    assert found.state is state
    assert found.may_start is (state not in (SchemaState.INCOMPATIBLE, SchemaState.MISSING))
    assert (found.id is not None) is (state is SchemaState.REGISTERED)


def test_a_key_with_another_doc_is_written_by_the_schema_that_is_there() -> None:
    told = json.loads(order(a="long").text) | {"doc": "another"}
    new = parse(json.dumps(told))

    found = plan(
        Part.KEY, "k", new.text, new, facts=SubjectFacts(Level.NONE, OLD), register=AutoRegister.TRUE
    )

    assert (found.state, found.id) == (SchemaState.REGISTERED, 7)
