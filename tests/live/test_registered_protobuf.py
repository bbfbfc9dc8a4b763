"""Values by a Protobuf schema, read and written in Spark; Protobuf's own library is the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.kafka.registered_encoding import written_bytes, written_error
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.core.schemas.derived import columns_of
from airflow_provider_sinks.core.schemas.protobuf import descriptor, parse
from airflow_provider_sinks.core.schemas.protobuf_derived import derive
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, header
from airflow_provider_sinks.streaming import protobuf_values
from airflow_provider_sinks.streaming.wire_values import WrittenAs

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  enum Kind { NONE = 0; BIG = 1; }
  message Place { string city = 1; optional int32 number = 2; }
  int64 id = 1;
  optional string what = 2;
  Kind kind = 3;
  Place at = 4;
  repeated string tags = 5;
  map<string, int32> counts = 6;
  google.protobuf.Timestamp moment = 7;
  google.protobuf.Int64Value wrapped = 8;
  oneof pay { string card = 9; int32 cash = 10; }
  uint64 big = 11;
  repeated Place more = 12;
  bytes raw = 13;
  fixed32 unsigned = 14;
  sint32 small = 15;
  float ratio = 16;
}
message Refund { message Part { int64 id = 1; } int64 id = 1; }
"""


def read(
    spark: SparkSession, reader: ProtobufSchema, written: WrittenAs, values: Sequence[bytes | None]
) -> Any:
    """Return the rows that are read of some values, each with its error."""
    records = spark.createDataFrame([(place, one) for place, one in enumerate(values)], "n int, value binary")
    data = sql.col("value")
    found = records.withColumn("whole", protobuf_values.decoded(data, reader, written, Part.VALUE))
    error = protobuf_values.error(data, sql.col("whole"), reader, written, Part.VALUE)
    body = sql.when(error.isNull(), protobuf_values.body(sql.col("whole")))
    return found.select("n", error.alias("error"), body.alias("body")).orderBy("n").collect()


def made(schema: ProtobufSchema, **fields: Any) -> Message:
    """Return a message of a schema."""
    whole: Message = GetMessageClass(descriptor(schema))(**fields)
    return whole


def parsed(schema: ProtobufSchema, written: bytes) -> Any:
    """Return the message behind its place in its file, as Protobuf's own library reads it."""
    return GetMessageClass(descriptor(schema)).FromString(written[1:])


def test_each_field_is_read_as_protobuf_has_it(spark_session: SparkSession) -> None:
    schema = parse(ORDER)
    place = {"city": "Bern"}
    whole = made(
        schema, id=-5, what="", kind="BIG", at=place, tags=["a", ""], counts={"": 0, "b": 2}, wrapped={},
        moment={"seconds": -1, "nanos": 999_999_999}, cash=0, big=2**64 - 1, more=[{}, place], raw=b"\0\xff",
        unsigned=2**32 - 1, small=-1, ratio=0.5,
    )  # fmt: skip
    values = [header(7) + b"\0" + whole.SerializeToString(), header(7) + b"\2\0", None]

    full, empty, tombstone = read(spark_session, schema, WrittenAs({7: schema}), values)

    assert (full["error"], empty["error"], tombstone["error"], tombstone["body"]) == (None, None, None, None)
    found = full["body"].asDict(recursive=True)
    assert found.pop("moment").timestamp() == pytest.approx(-0.000001)
    assert found.pop("ratio") == pytest.approx(0.5)
    assert found == {
        "id": -5, "what": "", "kind": "BIG", "at": {"city": "Bern", "number": None}, "tags": ["a", ""],
        "counts": {"": 0, "b": 2}, "wrapped": 0, "card": None, "cash": 0, "big": 2**64 - 1,
        "more": [{"city": "", "number": None}, {"city": "Bern", "number": None}], "raw": b"\0\xff",
        "unsigned": 2**32 - 1, "small": -1,
    }  # fmt: skip
    nothing = empty["body"].asDict()
    assert [name for name, value in nothing.items() if value is None] == [
        "what", "at", "moment", "wrapped", "card", "cash",
    ]  # fmt: skip
    assert (nothing["id"], nothing["kind"], nothing["tags"], nothing["counts"]) == (0, "NONE", [], {})


_BROKEN = {
    "cut off": (header(7) + b"\0\x08", "The value does not decode by schema id 7: "),
    "text that is not UTF-8": (
        header(7) + b"\0\x12\x02\xff\xfe",
        "The value does not decode by schema id 7: ",
    ),
    "a number that no symbol has": (header(7) + b"\0\x18\x07", "field kind is none of NONE, BIG."),
    "two of a oneof": (header(7) + b"\0\x4a\x01a\x50\x03", "more than one field of oneof pay is there."),
    "another message": (header(7) + b"\2\2", "it is message shop.Refund, and the sink reads shop.Order."),
    "a message inside another": (header(7) + b"\4\2\0", "it is message shop.Refund.Part, and the sink reads"),
    "no message": (header(7) + b"\2\x08", "no message of the schema is named behind its header."),
    "a year of six digits": (
        header(7) + b"\0\x3a\x07\x08\x80\xa0\x94\xa5\x8d\x1d",
        "not in the years 1 to 9999",
    ),
    "an unreadable schema": (header(8) + b"\0", "The value has other fields."),
    "no header": (b"\x08\x01", "The value is cut off: it has 2 bytes"),
}


def test_what_is_broken_is_told_and_the_rest_of_its_batch_is_read(spark_session: SparkSession) -> None:
    schema = parse(ORDER)
    good = header(7) + b"\0\x08\x05"
    values = [one for broken, _ in _BROKEN.values() for one in (broken, good)]

    rows = read(spark_session, schema, WrittenAs({7: schema, 8: "has other fields"}), values)

    assert [row["body"]["id"] for row in rows[1::2]] == [5] * len(_BROKEN)
    assert [row["error"] for row in rows[1::2]] == [None] * len(_BROKEN)
    for (name, (_, expected)), row in zip(_BROKEN.items(), rows[::2], strict=True):
        assert expected in (row["error"] or ""), name


def test_each_value_is_decoded_by_its_writer_and_taken_as_the_reader_has_it(
    spark_session: SparkSession,
) -> None:
    old = parse(
        'syntax = "proto3"; message A { int32 a = 1; uint32 b = 2; repeated int32 c = 3; string gone = 9; }'
    )
    new = parse(
        'syntax = "proto3"; message A { optional int64 a = 1; int64 renamed = 2; repeated sint64 c = 3; '
        "optional double d = 4; map<string, A2> e = 5; } message A2 { int32 x = 1; }"
    )
    values = [
        header(1) + b"\0" + made(old, b=2**32 - 1, c=[-1], gone="x").SerializeToString(),
        header(2) + b"\0" + made(new, c=[-2], e={"k": {"x": 3}}).SerializeToString(),
    ]

    by_old, by_new = read(spark_session, new, WrittenAs({1: old, 2: new}), values)

    assert by_old["body"].asDict() == {"a": 0, "renamed": 2**32 - 1, "c": [-1], "d": None, "e": {}}
    assert by_new["body"].asDict(recursive=True) == {
        "a": None, "renamed": 0, "c": [-2], "d": None, "e": {"k": {"x": 3}},
    }  # fmt: skip


EVERYTHING = """
    named_struct('b', 'x', 'a', cast(null AS int)) AS inner, 1 AS id, 2L AS long, cast(3 AS smallint) AS s,
    cast(1.5 AS float) AS ratio, 0.1D AS double, true AS flag, 'süß' AS what, X'00ff' AS raw,
    TIMESTAMP'1969-12-31 23:59:59.123456' AS at, array(1, 0) AS items, map('k', 'v', '', '') AS notes,
    array(named_struct('n', 1, 'deep', map(0, named_struct('z', ''))), named_struct('n', null, 'deep', map()))
    AS parts, cast(null AS bigint) AS missing, cast(null AS struct<q: int>) AS none,
    cast('' AS string) AS empty
"""


def test_what_is_made_of_columns_takes_what_they_have_and_reads_it_back(spark_session: SparkSession) -> None:
    output = spark_session.sql(f"SELECT {EVERYTHING}")
    schema = parse(derive(columns_of(output.schema.jsonValue()), "shop.Everything", "All types."))

    [written] = _written(output, schema)
    assert written["error"] is None
    whole = parsed(schema, bytes(written["body"]))

    assert (whole.at.seconds, whole.at.nanos) == (-1, 123_456_000)
    assert (whole.inner.b, whole.inner.HasField("a"), whole.HasField("missing")) == ("x", False, False)
    assert (list(whole.items), dict(whole.notes)) == ([1, 0], {"k": "v", "": ""})
    value = header(1) + bytes(written["body"])
    [back] = read(spark_session, schema, WrittenAs({1: schema}), [value])
    assert back["error"] is None
    assert back["body"].asDict(recursive=True) == output.collect()[0].asDict(recursive=True)


def _written(output: DataFrame, schema: ProtobufSchema) -> Any:
    columns: list[tuple[str, Column]] = [(name, sql.col(name)) for name in output.columns]
    by = WrittenBy(1, schema)
    body = sql.substring(written_bytes(output, columns, by), HEADER_BYTES + 1, 1_000_000)
    error = written_error(output, columns, by, Part.VALUE)
    return output.select(error.alias("error"), body.alias("body")).collect()


_COLUMNS = {
    "id": "1L",
    "kind": "'BIG'",
    "at": "cast(null AS struct<city: string>)",
    "tags": "cast(array() AS array<string>)",
    "counts": "cast(map() AS map<string, int>)",
    "big": "0BD",
    "unsigned": "0L",
    "card": "cast(null AS string)",
    "cash": "cast(null AS int)",
    "moment": "cast(null AS timestamp)",
}
_ROWS: dict[str, tuple[dict[str, str], str]] = {
    "as it should be": ({}, ""),
    "null where nothing is null": ({"id": "NULL"}, "field id is null, and its schema says that it never is"),
    "null for a list": ({"tags": "NULL"}, "field tags is null, and Protobuf has an empty list instead"),
    "null in a list": ({"tags": "array('a', null)"}, "field tags[] is null, and Protobuf has no null in it"),
    "null in a map": (
        {"counts": "map('a', cast(null AS int))"},
        "field counts[] is null, and Protobuf has no",
    ),
    "no symbol": ({"kind": "'PINK'"}, "field kind is none of NONE, BIG"),
    "below zero": ({"unsigned": "-1L"}, "field unsigned is not between 0 and the largest fixed32"),
    "too large": ({"unsigned": "4294967296L"}, "field unsigned is not between 0 and the largest fixed32"),
    "too large for 64 bits": (
        {"big": "18446744073709551616BD"},
        "field big is not between 0 and the largest",
    ),
    "null inside": ({"at": "named_struct('city', cast(null AS string))"}, "field at.city is null, and its"),
    "two of a oneof": ({"card": "'x'", "cash": "0"}, "more than one field of oneof pay is there"),
    "a year of five digits": (
        {"moment": "TIMESTAMP'+10000-01-01 00:00:00'"},
        "field moment is not in the years",
    ),
}


def _rows() -> Iterator[str]:
    for given, _ in _ROWS.values():
        columns = ", ".join(f"{value} AS {name}" for name, value in {**_COLUMNS, **given}.items())
        yield f"SELECT {columns}"


def test_each_row_is_written_as_its_schema_says_or_set_aside(spark_session: SparkSession) -> None:
    schema = parse(ORDER)
    output = spark_session.sql(" UNION ALL ".join(_rows())).coalesce(1)
    output = output.withColumn("big", sql.col("big").cast("decimal(20,0)"))

    written = _written(output, schema)

    for (name, (_, expected)), row in zip(_ROWS.items(), written, strict=True):
        assert (expected in row["error"]) if expected else row["error"] is None, (name, row["error"])
        assert (row["body"] is None) is bool(expected), name
    whole = parsed(schema, bytes(written[0]["body"]))
    assert (whole.id, whole.kind, whole.HasField("at"), whole.WhichOneof("pay")) == (1, 1, False, None)
