"""Values that Debezium did not have: Postgres does not send a large value that did not change.

What stands in its place is made of one text, and has the type of the column:

- a text, or bytes: the text itself; in an array the one element, in a map the one key. An ``hstore`` that is
  written as JSON is the text of an object with that key;
- an array of UUIDs: the one that Java makes of the text's bytes;
- an array of numbers, or of dates, which are days since 1970: one for each byte of the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
)

_TEXT: Final = "__debezium_unavailable_value"
_UUID: Final = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
_BYTES: Final = _TEXT.encode()
_IN_JSON: Final = ({_TEXT: _TEXT}, [_TEXT], [_UUID], [*_BYTES])
_AS_TEXT: Final = (_TEXT, *(json.dumps(one, separators=(",", ":")) for one in _IN_JSON))
"""Of a column that is declared as a text, whatever JSON has there."""
_EPOCH: Final = date(1970, 1, 1)


def is_unsent(value: Column, kind: DataType) -> Column | None:
    """Tell whether Debezium did not have a value; ``None`` for a type whose values never say so."""
    match kind:
        case StringType():
            return value.isin(*_AS_TEXT)
        case BinaryType():
            return value == sql.lit(_BYTES)
        case ArrayType(elementType=element):
            return _is_unsent_array(value, element)
        case MapType(keyType=StringType() | BinaryType() as key):
            return sql.array_contains(sql.map_keys(value), sql.lit(_as(key)))
        case _:
            return None


def _is_unsent_array(value: Column, element: DataType) -> Column | None:
    match element:
        case StringType():
            has_one = sql.array_contains(value, sql.lit(_TEXT)) | sql.array_contains(value, sql.lit(_UUID))
            return has_one | (value == _array(map(str, _BYTES)))
        case BinaryType():
            return sql.array_contains(value, sql.lit(_BYTES))
        case NumericType():
            is_as_long = sql.size(value) == len(_BYTES)
            return is_as_long & (value.cast("array<double>") == _array(map(float, _BYTES)))
        case DateType():
            return value == _array(_EPOCH + timedelta(days=byte) for byte in _BYTES)
        case _:
            return None


def _as(key: DataType) -> str | bytes:
    return _BYTES if isinstance(key, BinaryType) else _TEXT


def _array(values: Iterable[Any]) -> Column:
    return sql.array(*map(sql.lit, values))
