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

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from airflow_provider_sinks.core.query.views import INTERNAL
from airflow_provider_sinks.streaming import json_fields, json_numbers

ERROR = f"{INTERNAL}unreadable"
_TRIMMED = f"{INTERNAL}trimmed"
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


def read_json(records: DataFrame, schema: StructType) -> tuple[DataFrame, list[Column]]:
    """Return the records with :data:`ERROR`, and the columns of the schema over them.

    The error is null, and so are the columns, for a record without a value (a tombstone).

    :param records: with the column ``value``, binary.
    :param schema: what is not nullable in it must be there.
    """
    text = sql.col("value").cast("string")
    trimmed = sql.when(text.endswith("}"), text).otherwise(sql.btrim(text, sql.lit(_BLANKS)))
    bytes_ = sql.col(_TRIMMED).cast("binary")
    opened = sql.substring(bytes_, sql.lit(1), sql.octet_length(bytes_) - 1).cast("string")
    prepared = (
        records.withColumn(_TRIMMED, trimmed)
        .withColumn(_OPENED, opened)
        .withColumn(_FLAT, ~sql.contains(sql.col(_OPENED), sql.lit("}")))
    )
    judged = _parsed(prepared, schema).withColumn(_AGAIN, _again(schema)).withColumn(ERROR, _error(schema))
    readable = sql.col(ERROR).isNull()
    columns = [sql.when(readable, json_fields.narrow(_field(f.name), f)).alias(f.name) for f in schema]
    return judged, columns


def _parsed(prepared: DataFrame, schema: StructType) -> DataFrame:
    """Add what Spark reads in a value: nothing, where it would take long to read.

    What it takes for broken where each decimal is text is as broken where it is none, and is not read either:
    nobody has looked at its decimals.
    """
    parsed = _from_json(_ending(), json_fields.wide(schema))
    if not json_numbers.has_decimals(schema):
        return prepared.withColumn(_COSTLY, sql.lit(False)).withColumn(_PARSED, parsed)
    text, texts, is_odd = sql.col(_TRIMMED), sql.col(_TEXTS), sql.col(_ODD)
    looked = _from_json(text, json_numbers.as_texts(schema))
    costly = json_numbers.holds_costly_number(text) | json_numbers.holds_costly_text(texts, schema)
    is_broken = texts.isNotNull() & texts.getField(_CORRUPT).isNotNull()
    return (
        prepared.withColumn(_ODD, json_numbers.is_odd(text))
        .withColumn(_TEXTS, sql.when(is_odd & json_numbers.may_hold_costly_text(text), looked))
        .withColumn(_COSTLY, sql.coalesce(is_odd & costly, sql.lit(False)))
        .withColumn(_PARSED, sql.when(~sql.col(_COSTLY) & ~is_broken, parsed))
    )


def not_utf8(text: Column) -> Column:
    """Tell whether a text holds bytes that are no UTF-8."""
    return ~sql.is_valid_utf8(text)


def _from_json(text: Column, schema: StructType) -> Column:
    ours = [StructField(_END, BooleanType()), StructField(_CORRUPT, StringType())]
    return sql.from_json(text, StructType([*schema.fields, *ours]), _OPTIONS)


def _ending() -> Column:
    """Return the value with our field at its end, or as it is where it cannot hold a second object."""
    marked = sql.concat(sql.col(_OPENED), sql.lit(f',"{_END}":true}}'))
    return sql.when(sql.col(_FLAT), sql.col(_TRIMMED)).otherwise(marked)


def _is_whole(parsed: Column) -> Column:
    """Tell whether nothing stands behind the object that was read."""
    ends = sql.col(_TRIMMED).endswith("}")
    return ends & (sql.col(_FLAT) | sql.coalesce(parsed.getField(_END), sql.lit(False)))


def _field(name: str) -> Column:
    return sql.col(_PARSED).getField(name)


def _is_spoilt() -> Column:
    parsed = sql.col(_PARSED)
    return parsed.isNull() | parsed.getField(_CORRUPT).isNotNull() | ~_is_whole(parsed)


def _again(schema: StructType) -> Column:
    """Read the first object of a value that does not parse once more, with each field as text, to say why."""
    texts = StructType([StructField(field.name, StringType()) for field in schema])
    return sql.when(
        sql.col("value").isNotNull() & _is_spoilt(), _from_json(sql.col("value").cast("string"), texts)
    )


def _error(schema: StructType) -> Column:
    text, parsed = sql.col("value").cast("string"), sql.col(_PARSED)
    escapes = sql.contains(text, sql.lit("\\u"))
    unescaped = sql.replace(text, sql.lit("\\\\"), sql.lit("__"))
    error = (
        sql.when(sql.col("value").isNull(), sql.lit(None).cast("string"))
        .when(not_utf8(text), sql.lit("The value is not UTF-8."))
        .when(sql.col(_COSTLY), sql.lit(f"The value does not fit the schema: {json_numbers.REASON}."))
        .when(_is_spoilt(), _why_spoilt(schema))
        .when(escapes & sql.rlike(unescaped, sql.lit(_HALF_A_PAIR)), sql.lit(_HALF))
    )
    for wrong, why in json_fields.losses(parsed, schema):
        error = error.when(wrong, sql.lit(f"The value does not fit the schema: {why}."))
    return error


_HALF = r"The value holds half a surrogate pair, such as \ud800, which is no character."
_MORE = "The value is more than one JSON object: something stands behind the first one."


def _why_spoilt(schema: StructType) -> Column:
    start, again = sql.btrim(sql.col("value").cast("string"), sql.lit(_BLANKS)), sql.col(_AGAIN)
    misfits = _misfits(again, schema)
    named = sql.when(
        sql.col(_PARSED).isNull() | (misfits == ""), sql.lit("a field has another type")
    ).otherwise(misfits)
    return (
        sql.when(start == "", sql.lit("The value is empty."))
        .when(~start.startswith("{"), sql.lit("The value is not a JSON object."))
        .when(again.isNull() | again.getField(_CORRUPT).isNotNull(), sql.lit("The value is not JSON."))
        .when(~_is_whole(sql.col(_PARSED)), sql.lit(_MORE))
        .otherwise(sql.concat(sql.lit("The value does not fit the schema: "), named, sql.lit(".")))
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
