"""From the value of a record to the columns of a schema: one whole JSON object, or an error that says why.

All of it is Spark expressions. Spark's parser reads the first object of a text and never looks behind it.
That nothing is behind it is shown without a second parser:

- where the first ``}`` of the value is its last character, the object that was read ends there;
- else that last ``}`` is replaced by a field of ours and ``}``. Whatever the value holds behind its first
  object, our field then stands behind it too, and the object that was read has it not. Its name is random, so
  no value can bring it along.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.core.query.views import INTERNAL
from airflow_provider_sinks.streaming import json_fields, json_numbers

ERROR = f"{INTERNAL}unreadable"
"""Why nothing could be read."""
TRIMMED = f"{INTERNAL}trimmed"
"""The text that was read, without blanks around it."""
_DATA = f"{INTERNAL}data"
_OPENED = f"{INTERNAL}opened"
_FLAT = f"{INTERNAL}flat"
_ODD = f"{INTERNAL}odd"
_TEXTS = f"{INTERNAL}texts"
_COSTLY = f"{INTERNAL}costly"
_PARSED = f"{INTERNAL}parsed"
_AGAIN = f"{INTERNAL}again"
_CORRUPT = f"{INTERNAL}corrupt"
_END = f"{INTERNAL}end_{secrets.token_hex(8)}"

_BLANKS = " \t\r\n"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "dateFormat": "yyyy-MM-dd",
    "enableDateTimeParsingFallback": "false",
}
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_A_PAIR = f"{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}"


@dataclass(frozen=True)
class JsonBytes:
    """What is read as JSON.

    :param data: binary.
    :param part: what people call it.
    :param options: of Spark's parser, in the place of ours.
    """

    data: Column
    part: str = "value"
    options: Mapping[str, str] = field(default_factory=dict)


def read_json(
    records: DataFrame, schema: StructType, given: JsonBytes | None = None
) -> tuple[DataFrame, list[Column]]:
    """Return the records with :data:`ERROR`, and the columns of the schema: see :func:`json_columns`."""
    found = json_columns(schema, given)
    return found.added_to(records), list(found.taken)


def json_columns(schema: StructType, given: JsonBytes | None = None) -> LaidColumns:
    """Return what adds :data:`ERROR` to records, and the columns of the schema.

    The error is null, and so are the columns, for a record without a value (a tombstone).

    :param schema: what is not nullable in it must be there.
    :param given: what is read; the column ``value``, unless something else is named.
    """
    given = given or JsonBytes(sql.col("value"))
    text = sql.col(_DATA).cast("string")
    trimmed = sql.when(text.endswith("}"), text).otherwise(sql.btrim(text, sql.lit(_BLANKS)))
    bytes_ = sql.col(TRIMMED).cast("binary")
    opened = sql.substring(bytes_, sql.lit(1), sql.octet_length(bytes_) - 1).cast("string")
    added = (
        (_DATA, given.data),
        (TRIMMED, trimmed),
        (_OPENED, opened),
        (_FLAT, ~sql.contains(sql.col(_OPENED), sql.lit("}"))),
        *_parsed(schema, given.options),
        (_AGAIN, _again(schema)),
        (ERROR, _error(schema, f"The {given.part}")),
    )
    readable = sql.col(ERROR).isNull()
    columns = [sql.when(readable, json_fields.narrow(_field(f.name), f)).alias(f.name) for f in schema]
    return LaidColumns(added, tuple(columns))


def _parsed(schema: StructType, options: Mapping[str, str]) -> Iterator[tuple[str, Column]]:
    """Give what Spark reads in a value: nothing, where it would take long to read.

    What it takes for broken where each decimal is text is as broken where it is none, and is not read either:
    nobody has looked at its decimals.
    """
    parsed = from_json(_ending(), json_fields.wide(schema), options)
    if not json_numbers.has_decimals(schema):
        yield _COSTLY, sql.lit(False)
        yield _PARSED, parsed
        return
    text, texts, is_odd = sql.col(TRIMMED), sql.col(_TEXTS), sql.col(_ODD)
    looked = from_json(text, json_numbers.as_texts(schema))
    costly = json_numbers.holds_costly_number(text) | json_numbers.holds_costly_text(texts, schema)
    no_texts = texts.isNotNull() & texts.getField(_CORRUPT).isNotNull()
    yield _ODD, json_numbers.is_odd(text)
    yield _TEXTS, sql.when(is_odd & json_numbers.may_hold_costly_text(text), looked)
    yield _COSTLY, sql.coalesce(is_odd & costly, sql.lit(False))
    yield _PARSED, sql.when(~sql.col(_COSTLY) & ~no_texts, parsed)


def not_utf8(text: Column) -> Column:
    """Tell whether a text holds bytes that are no UTF-8."""
    return ~sql.is_valid_utf8(text)


def from_json(text: Column, schema: StructType, options: Mapping[str, str] | None = None) -> Column:
    """Return what Spark reads in a text, and whether it is broken (:func:`is_broken`)."""
    ours = [StructField(_END, BooleanType()), StructField(_CORRUPT, StringType())]
    return sql.from_json(text, StructType([*schema.fields, *ours]), {**_OPTIONS, **(options or {})})


def is_broken(parsed: Column) -> Column:
    """Tell whether Spark could not read all of what it read."""
    return parsed.isNull() | parsed.getField(_CORRUPT).isNotNull()


def _ending() -> Column:
    """Return the value with our field at its end, or as it is where it cannot hold a second object."""
    marked = sql.concat(sql.col(_OPENED), sql.lit(f',"{_END}":true}}'))
    return sql.when(sql.col(_FLAT), sql.col(TRIMMED)).otherwise(marked)


def _is_whole(parsed: Column) -> Column:
    """Tell whether nothing stands behind the object that was read."""
    ends = sql.col(TRIMMED).endswith("}")
    return ends & (sql.col(_FLAT) | sql.coalesce(parsed.getField(_END), sql.lit(False)))


def _field(name: str) -> Column:
    return sql.col(_PARSED).getField(name)


def _is_spoilt() -> Column:
    parsed = sql.col(_PARSED)
    return is_broken(parsed) | ~_is_whole(parsed)


def _again(schema: StructType) -> Column:
    """Read the first object of a value that does not parse once more, with each field as text, to say why."""
    texts = StructType([StructField(field.name, StringType()) for field in schema])
    return sql.when(
        sql.col(_DATA).isNotNull() & _is_spoilt(), from_json(sql.col(_DATA).cast("string"), texts)
    )


def _error(schema: StructType, part: str) -> Column:
    text, parsed = sql.col(_DATA).cast("string"), sql.col(_PARSED)
    escapes = sql.contains(text, sql.lit("\\u"))
    unescaped = sql.replace(text, sql.lit("\\\\"), sql.lit("__"))
    error = (
        sql.when(sql.col(_DATA).isNull(), sql.lit(None).cast("string"))
        .when(not_utf8(text), sql.lit(f"{part} is not UTF-8."))
        .when(sql.col(_COSTLY), sql.lit(f"{part} does not fit the schema: {json_numbers.REASON}."))
        .when(_is_spoilt(), _why_spoilt(schema, part))
        .when(escapes & sql.rlike(unescaped, sql.lit(_HALF_A_PAIR)), sql.lit(f"{part} {_HALF}"))
    )
    for wrong, why in json_fields.losses(parsed, schema):
        error = error.when(wrong, sql.lit(f"{part} does not fit the schema: {why}."))
    return error


_HALF = r"holds half a surrogate pair, such as \ud800, which is no character."
_MORE = "is more than one JSON object: something stands behind the first one."


def _why_spoilt(schema: StructType, part: str) -> Column:
    start, again = sql.btrim(sql.col(_DATA).cast("string"), sql.lit(_BLANKS)), sql.col(_AGAIN)
    misfits = _misfits(again, schema)
    named = sql.when(
        sql.col(_PARSED).isNull() | (misfits == ""), sql.lit("a field has another type")
    ).otherwise(misfits)
    return (
        sql.when(start == "", sql.lit(f"{part} is empty."))
        .when(~start.startswith("{"), sql.lit(f"{part} is not a JSON object."))
        .when(is_broken(again), sql.lit(f"{part} is not JSON."))
        .when(~_is_whole(sql.col(_PARSED)), sql.lit(f"{part} {_MORE}"))
        .otherwise(sql.concat(sql.lit(f"{part} does not fit the schema: "), named, sql.lit(".")))
    )


def _misfits(texts: Column, schema: StructType) -> Column:
    """Name the fields that have a value as text and none in the type of the schema."""
    wrong = [
        sql.when(
            _field(field.name).isNull() & texts.getField(field.name).isNotNull(),
            sql.lit(f"field {field.name} is not {field.dataType.simpleString()}"),
        )
        for field in schema
    ]
    return sql.concat_ws("; ", *wrong)
