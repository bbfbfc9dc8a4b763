"""What becomes of a field when JSON is read into a type of Spark, and which readings would lose something.

Spark rounds a number silently to the scale of a decimal, reads ``1e400`` as infinity, and takes milliseconds
for seconds, which is the year 57840; a byte of 200 is -56 to it. Decimals are therefore read with all the
digits that Spark has, bytes as short numbers, and narrowed only once that is shown to change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_DECIMAL_DIGITS_MAX = 38
_BYTE_MIN, _BYTE_MAX = -128, 127
_FIRST_MOMENT = "0001-01-01 00:00:00"
_LAST_MOMENT = "9999-12-31 23:59:59.999999"

_MOMENTS = (TimestampType, TimestampNTZType)

Loss = tuple[Column, str]
"""When a reading loses something, and what to say then."""


def required(schema: StructType, names: tuple[str, ...]) -> StructType:
    """Return the schema with some of its columns not nullable."""
    return StructType([StructField(f.name, f.dataType, f.nullable and f.name not in names) for f in schema])


def wide(schema: StructType) -> StructType:
    """Return the schema to read by: decimals with all digits behind the point that Spark has, bytes wider."""
    return StructType([StructField(f.name, _changed(f.dataType, _widened)) for f in schema])


def narrow(column: Column, field: StructField) -> Column:
    """Return a column that was read by the wide schema in its own type."""
    own = _changed(field.dataType, lambda leaf: leaf)
    return column if own == _changed(own, _widened) else column.try_cast(own)


def losses(value: Column, kind: DataType, path: str = "") -> Iterator[Loss]:
    """Give what must not be, for a value that was read by the wide schema, and its parts."""
    match kind:
        case StructType():
            for field in kind:
                yield from _field_losses(value, field, f"{path}.{field.name}" if path else field.name)
        case ArrayType():
            yield from _element_losses(value, kind.elementType, f"{path}[]")
        case MapType():
            yield from _element_losses(sql.map_values(value), kind.valueType, f"{path}[]")
        case DecimalType():
            same = sql.coalesce(value.try_cast(kind) == value, sql.lit(False))
            yield value.isNotNull() & ~same, f"field {path} has more digits than {kind.simpleString()}"
        case ByteType():
            yield (value < _BYTE_MIN) | (value > _BYTE_MAX), f"field {path} is not {kind.simpleString()}"
        case DoubleType() | FloatType():
            yield sql.abs(value) == math.inf, f"field {path} is too large for {kind.simpleString()}"
        case TimestampType() | TimestampNTZType():
            first, last = (sql.lit(at).cast(kind) for at in (_FIRST_MOMENT, _LAST_MOMENT))
            yield (value < first) | (value > last), f"field {path} is not in the years 1 to 9999"
        case _:
            return


def moments(kind: DataType) -> DataType:
    """Return a type in which :func:`losses` finds nothing but moments out of range.

    For values that were not read from text: they have their types already, and infinity is one of them.
    """
    return _changed(kind, lambda leaf: leaf if isinstance(leaf, _MOMENTS) else StringType())


def _field_losses(parent: Column, field: StructField, path: str) -> Iterator[Loss]:
    value = parent.getField(field.name)
    if not field.nullable:
        yield parent.isNotNull() & value.isNull(), f"field {path} is missing or null, and it is required"
    yield from losses(value, field.dataType, path)


def _element_losses(values: Column, kind: DataType, path: str) -> Iterator[Loss]:
    reasons = [why for _, why in losses(sql.lit(None), kind, path)]
    for index, why in enumerate(reasons):
        yield sql.exists(values, _nth(kind, path, index)), why


def _nth(kind: DataType, path: str, index: int) -> Callable[[Column], Column]:
    return lambda element: list(losses(element, kind, path))[index][0]


def _widened(leaf: DataType) -> DataType:
    if isinstance(leaf, ByteType):
        return ShortType()
    if not isinstance(leaf, DecimalType):
        return leaf
    return DecimalType(_DECIMAL_DIGITS_MAX, _DECIMAL_DIGITS_MAX - (leaf.precision - leaf.scale))


def _changed(kind: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Return a type with its leaves changed, and everything in it nullable."""
    match kind:
        case StructType():
            return StructType([StructField(f.name, _changed(f.dataType, change)) for f in kind])
        case ArrayType():
            return ArrayType(_changed(kind.elementType, change))
        case MapType():
            return MapType(kind.keyType, _changed(kind.valueType, change))
        case _:
            return change(kind)
