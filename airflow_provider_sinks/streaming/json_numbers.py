r"""Decimals that would keep Spark busy for seconds: it writes ``1e4000000`` out, digit by digit, to round it.

No decimal of Spark needs an exponent of four digits; such a number, or text for a decimal, does not parse. To
find it without reading it, and without taking the text of another field for it:

- a cheap look at the whole value: an ``e`` with four digits behind it, or an escape, which may be either;
- where that is found, numbers are looked for outside of strings;
- where it ends a string, or may do so, each decimal is read as text first.

Spark takes text for a decimal with commas anywhere, and digits of any script. Without a decimal in the schema
none of this is done: no other type is read that way.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructField, StructType

LENGTH_MAX = 16_384
"""How many characters text for a decimal may have: Spark's time grows with their square."""
REASON = "a number has an exponent of more than 999, or text for a decimal is too long"

_DIGIT = r"(?:\p{Nd}|\\u\p{XDigit}{4})"
_PERHAPS = r"[eE\\](?:[+\-,]*+(?:\p{Nd},*+){4}|u)"
_NUMBER_PERHAPS = r"[0-9][eE][+-]?[0-9]{4}"
_TEXT_PERHAPS = (
    r'(?s)[eE](?:[+\-,]*+(?:\p{Nd},*+){4,}+(?:"|.?\z)'
    rf"|(?:[+\-,]|\\u002[bBcCdD])*+(?=[\p{{Nd}},]*+\\u)(?:{_DIGIT},*+){{4}})"
    r"|\\u00(?:[46]5|3[0-9]|2[bBcCdDeE])"
)
_STRING = r'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"'
"""Possessive all through: else Java goes one call deeper for each character."""
_NUMBER = r"[0-9][eE][+-]?0*+[1-9][0-9]{3}"
_TEXT = r"[eE][+-]?0*+\p{Nd}{4}"


def is_odd(text: Column) -> Column:
    """Tell whether a value has to be looked at any closer; hardly one has."""
    return (sql.octet_length(text) > LENGTH_MAX) | sql.rlike(text, sql.lit(_PERHAPS))


def may_hold_costly_text(text: Column) -> Column:
    """Tell whether the decimals of an odd value must be read as text first."""
    return (sql.octet_length(text) > LENGTH_MAX) | sql.rlike(text, sql.lit(_TEXT_PERHAPS))


def holds_costly_number(text: Column) -> Column:
    """Tell whether a number of an odd value, outside of its strings, is costly."""
    outside = sql.regexp_replace(text, sql.lit(_STRING), sql.lit('""'))
    return sql.rlike(text, sql.lit(_NUMBER_PERHAPS)) & sql.rlike(outside, sql.lit(_NUMBER))


def has_decimals(kind: DataType) -> bool:
    """Tell whether anything in a type is a decimal."""
    match kind:
        case StructType():
            return any(has_decimals(field.dataType) for field in kind)
        case ArrayType():
            return has_decimals(kind.elementType)
        case MapType():
            return has_decimals(kind.valueType)
        case _:
            return isinstance(kind, DecimalType)


def as_texts(schema: StructType) -> StructType:
    """Return a schema with text in the place of each decimal."""
    return StructType([StructField(field.name, _as_text(field.dataType)) for field in schema])


def _as_text(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return as_texts(kind)
        case ArrayType():
            return ArrayType(_as_text(kind.elementType))
        case MapType():
            return MapType(kind.keyType, _as_text(kind.valueType))
        case _:
            return StringType() if isinstance(kind, DecimalType) else kind


def holds_costly_text(value: Column, kind: DataType) -> Column:
    """Tell whether a decimal is written in a costly way.

    :param value: read by what :func:`as_texts` returns.
    """
    match kind:
        case StructType():
            fields = [f for f in kind if has_decimals(f.dataType)]
            found = [holds_costly_text(value.getField(field.name), field.dataType) for field in fields]
            return reduce(Column.__or__, found, sql.lit(False))
        case ArrayType():
            return _any_costly(value, kind.elementType)
        case MapType():
            return _any_costly(sql.map_values(value), kind.valueType)
        case _:
            plain = sql.replace(value, sql.lit(","), sql.lit(""))
            costly = sql.rlike(plain, sql.lit(_TEXT)) | (sql.length(value) > LENGTH_MAX)
            return sql.coalesce(costly, sql.lit(False))


def _any_costly(values: Column, kind: DataType) -> Column:
    return sql.coalesce(sql.exists(values, lambda value: holds_costly_text(value, kind)), sql.lit(False))
