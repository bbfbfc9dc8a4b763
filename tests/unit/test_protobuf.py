"""Protobuf schemas: which message is meant, its types, what is made of columns, and what may follow."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from airflow_provider_sinks.core.schemas.derived import Column
from airflow_provider_sinks.core.schemas.languages import key_changes
from airflow_provider_sinks.core.schemas.protobuf import parse
from airflow_provider_sinks.core.schemas.protobuf_compatibility import same_bytes, unreadable
from airflow_provider_sinks.core.schemas.protobuf_derived import derive, misfits
from airflow_provider_sinks.core.schemas.protobuf_spark import spark_columns
from airflow_provider_sinks.core.schemas.protobuf_types import Named, ProtobufSchema, stands_alone
from airflow_provider_sinks.core.schemas.wire import message_places
from airflow_provider_sinks.core.spec.problems import UnfitPartsError


def file(body: str, package: str = "shop") -> str:
    """Return the text of a file."""
    return f'syntax = "proto3"; package {package}; import "google/protobuf/timestamp.proto"; {body}'


def message(fields: str, more: str = "") -> ProtobufSchema:
    """Return a schema with one message of these fields."""
    return parse(file(f"message A {{ {fields} }} {more}"))


def test_the_first_message_is_meant_unless_another_one_is_named() -> None:
    text = file("message A { int32 x = 1; message B { int32 y = 1; } } message C { A.B b = 1; }")

    assert (parse(text).name, parse(text).path) == ("shop.A", (0,))
    assert (parse(text, message="shop.A.B").name, parse(text, message="shop.A.B").path) == (
        "shop.A.B",
        (0, 0),
    )
    assert parse(text, message="shop.C").messages == {(0,): "shop.A", (0, 0): "shop.A.B", (1,): "shop.C"}
    with pytest.raises(UnfitPartsError, match=r"'shop\.D' is no message of it"):
        parse(text, message="shop.D")


def test_a_schema_that_stands_alone_is_read_as_what_it_was() -> None:
    schema = parse(file("message A { int32 x = 1; } message C { A a = 1; }"), message="shop.C")

    assert stands_alone(schema.text)
    assert parse(schema.text) == schema


def test_a_serialized_descriptor_is_read_as_its_text() -> None:
    whole = message("google.protobuf.Timestamp at = 1;")
    [*_, last] = FileDescriptorSet.FromString(whole.files).file

    assert parse(base64.b64encode(last.SerializeToString()).decode()).type == whole.type


def test_what_is_imported_is_taken_from_the_references_in_their_order() -> None:
    others = [
        ("b.proto", file("message B { int32 x = 1; }")),
        ("c.proto", file('import "b.proto"; message C { B b = 1; }')),
    ]

    found = parse(file('import "c.proto"; message A { C c = 1; }'), others)

    assert spark_columns(found) == (("c", "struct<`b`: struct<`x`: int>>"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "Expected top-level statement"),
        ('syntax = "proto3"; message A { strng x = 1; int32 y = 1; }', '"strng" is not defined'),
        ('syntax = "proto3"; import "gone.proto"; message A { int32 y = 1; }', "gone.proto: File not found"),
        ('syntax = "proto3"; enum E { X = 0; }', "has no message"),
        ('syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }', "is a group of"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UnfitPartsError) as raised:
        parse(text)

    assert any(said in str(problem) for problem in raised.value.problems)


@pytest.mark.parametrize("name", ["../../outside.proto", "/etc/outside.proto", ""])
def test_a_reference_leads_out_of_no_folder(name: str) -> None:
    with pytest.raises(UnfitPartsError, match="is no name of a file to import"):
        parse(file("message A { int32 x = 1; }"), [(name, file(""))])


_TYPES = {
    "double a = 1;": "double",
    "sfixed32 a = 1;": "int",
    "uint32 a = 1;": "bigint",
    "sint64 a = 1;": "bigint",
    "fixed64 a = 1;": "decimal(20,0)",
    "bytes a = 1;": "binary",
    "repeated bool a = 1;": "array<boolean>",
    "map<int32, B> a = 1;": "map<int,struct<`x`: string>>",
    "google.protobuf.Timestamp a = 1;": "timestamp",
    "E a = 1;": "string",
    "google.protobuf.UInt32Value a = 1;": "bigint",
}


@pytest.mark.parametrize(("field", "kind"), _TYPES.items())
def test_each_type_has_its_column(field: str, kind: str) -> None:
    more = "message B { string x = 1; } enum E { X = 0; }"
    text = file(f'import "google/protobuf/wrappers.proto"; message A {{ {field} }} {more}')

    assert spark_columns(parse(text)) == (("a", kind),)


@pytest.mark.parametrize(
    ("head", "field", "has_presence", "is_required"),
    [
        ('syntax = "proto3";', "int32 x = 1;", False, False),
        ('syntax = "proto3";', "optional int32 x = 1;", True, False),
        ('syntax = "proto3";', "oneof y { int32 x = 1; }", True, False),
        ('syntax = "proto2";', "optional int32 x = 1 [default = 5];", True, False),
        ('syntax = "proto2";', "required int32 x = 1;", True, True),
        ('edition = "2023";', "int32 x = 1;", True, False),
        ('edition = "2023";', "int32 x = 1 [features.field_presence = IMPLICIT];", False, False),
    ],
)
def test_whether_a_field_is_told_from_its_default_is_what_its_syntax_says(
    head: str, field: str, *, has_presence: bool, is_required: bool
) -> None:
    [found] = parse(f"{head} message A {{ {field} }}").type.fields

    assert (found.has_presence, found.is_required) == (has_presence, is_required)


def test_what_no_column_can_be_is_told_by_field() -> None:
    schema = message(
        "int32 x = 1; int32 X = 2; A inner = 3; repeated B others = 4;", "message B { B b = 1; }"
    )

    with pytest.raises(UnfitPartsError) as raised:
        spark_columns(schema)

    assert isinstance(schema.type.fields[2].type, Named)
    assert [one.where for one in raised.value.problems] == ["X", "inner", "others[].b"]


def test_a_place_is_written_as_zigzag_and_the_first_one_as_zero() -> None:
    assert message_places((0,)) == (b"\0", b"\2\0")
    assert message_places((2, 100)) == (b"\4\4\xc8\1",)


PLACE = {"type": "struct", "fields": [{"name": "city", "type": "string", "nullable": True, "metadata": {}}]}


def columns(**types: Any) -> list[Column]:
    """Return columns that may be null."""
    return [Column(name, kind) for name, kind in types.items()]


def test_what_is_made_of_columns_says_what_they_may_be() -> None:
    made = derive(
        [
            Column("id", "long", nullable=False),
            Column("at", "timestamp"),
            Column("place", PLACE, comment="where"),
        ],
        "shop.Order",
        "The value.",
    )

    assert made == (
        'syntax = "proto3";\npackage shop;\n\nimport "google/protobuf/timestamp.proto";\n\n// The value.\n'
        "message Order {\n  int64 id = 1;\n  .google.protobuf.Timestamp at = 2;\n"
        "  // where\n  Place place = 3;\n"
        "  message Place {\n    optional string city = 1;\n  }\n}\n"
    )


def test_a_field_keeps_its_number_at_every_depth_and_what_is_gone_is_reserved() -> None:
    first = parse(derive(columns(a="long", gone="string", place=PLACE), "shop.A", ""))
    wider = {"type": "struct", "fields": [{**PLACE["fields"][0], "name": "zip"}, *PLACE["fields"]]}  # type: ignore[dict-item]
    second = parse(derive(columns(new="long", place=wider, a="long"), "shop.A", "", before=first))
    third = parse(derive(columns(a="long", newest="long"), "shop.A", "", before=second))

    assert {one.name: one.number for one in second.type.fields} == {"new": 4, "place": 3, "a": 1}
    inner: Any = second.type.fields[1].type
    assert {one.name: one.number for one in inner.fields} == {"zip": 2, "city": 1}
    assert {one.name: one.number for one in third.type.fields} == {"a": 1, "newest": 5}
    assert third.reserved == (("gone", "new", "place"), ((2, 2), (3, 3), (4, 4)))


_REFUSED = {
    "date": ("date", "is date, which Protobuf has not (CAST(a AS string))"),
    "decimal": ("decimal(9,2)", "is decimal(9,2), which Protobuf has not (CAST(a AS string))"),
    "a list of lists": (
        {"type": "array", "elementType": {"type": "array", "elementType": "long"}},
        "is array inside an array or a map, which Protobuf has not",
    ),
    "a map by a double": (
        {"type": "map", "keyType": "double", "valueType": "long"},
        "is a map by double, and Protobuf has maps by text and integers",
    ),
}


@pytest.mark.parametrize(("kind", "said"), _REFUSED.values(), ids=_REFUSED)
def test_what_has_no_form_is_refused_with_the_cast_to_write(kind: Any, said: str) -> None:
    with pytest.raises(UnfitPartsError) as raised:
        derive(columns(a=kind), "shop.A", "")

    assert said in str(raised.value.problems[0])


def test_what_does_not_fit_a_schema_is_told_with_the_cast_to_write() -> None:
    schema = message(
        "int32 a = 1; uint64 b = 2; E c = 3; repeated string d = 4; A e = 5;", "enum E { X = 0; }"
    )

    found = misfits(
        columns(a="long", b="decimal(20,0)", c="string", d="string", e="string", f="long"), schema
    )

    assert [str(problem) for problem in found] == [
        "a: is long, and int32 in the schema (CAST(a AS int))",
        "d: is string, and repeated string in the schema",
        "e: is shop.A inside itself, and a column has an end (leave e out)",
        "f: is no field of the schema (leave it out; fields: a, b, c, d, e)",
    ]


_READS = {
    "wider": ("int64 x = 1;", "sint32 x = 1;", ()),
    "narrower": ("int32 x = 1;", "int64 x = 1;", ("field x is written as int64 and read as int32",)),
    "unsigned in a wider one": ("int64 x = 1;", "fixed32 x = 1;", ()),
    "unsigned in one as wide": (
        "int32 x = 1;",
        "uint32 x = 1;",
        ("field x is written as uint32 and read as int32",),
    ),
    "another name": ("int32 y = 1;", "int32 x = 1;", ()),
    "another number": (
        "int32 x = 2;",
        "int32 x = 1;",
        ("field x is written with number 1, and is read by number 2",),
    ),
    "a list": (
        "repeated int32 x = 1;",
        "int32 x = 1;",
        ("field x is written as int32 and read as repeated int32",),
    ),
    "presence": ("optional int32 x = 1;", "int32 x = 1;", ()),
    "a symbol more": ("E x = 1; enum E { I = 0; }", "E x = 1; enum E { I = 0; K = 1; }", ()),
    "a symbol that means another one": (
        "E x = 1; enum E { I = 0; K = 1; }",
        "E x = 1; enum E { I = 0; K = 2; }",
        ("field x is written with K = 2 and read with K = 1",),
    ),
    "inside": (
        "M m = 1; message M { int32 x = 1; }",
        "M m = 1; message M { string x = 1; }",
        ("field m.x is written as string and read as int32",),
    ),
}


@pytest.mark.parametrize(("reads", "writes", "why"), _READS.values(), ids=_READS)
def test_what_was_written_is_read_or_refused_by_field(reads: str, writes: str, why: tuple[str, ...]) -> None:
    assert unreadable(message(reads), message(writes)) == why


def test_a_key_is_written_alike_only_by_the_same_numbers_and_types() -> None:
    key = message("int64 a = 1; int32 b = 2;")

    assert same_bytes(message("int32 b = 2; int64 renamed = 1;"), key)
    assert key_changes(message("int64 a = 1; int64 b = 2;"), key) == (
        "field b was int32 = 2 and is int64 = 2",
    )
    assert key_changes(message("optional int64 a = 1; int32 b = 2;"), key) == (
        "field a was int64 = 1 and is optional int64 = 1",
    )
