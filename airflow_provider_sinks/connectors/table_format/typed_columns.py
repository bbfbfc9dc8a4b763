"""Columns of Arrow as a file has them: other names inside of structs, other time zones, smaller offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa


@dataclass(frozen=True)
class _Renamed:
    """An array that is read as one of another type, which must have the same layout in memory."""

    array: pa.Array
    kind: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        _, data = self.array.__arrow_c_array__()
        return self.kind.__arrow_c_schema__(), data


def as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column as one of a type that differs in names and time zones alone.

    A cast would match the fields of a struct by their names, and give null for one that is called otherwise
    in a file.
    """
    if column.type.equals(kind, check_metadata=False):
        return column
    if not _is_laid_out_as(column.type, kind):
        return column.cast(kind) if not pa.types.is_nested(kind) else _refuse(column.type, kind)
    return pa.chunked_array([pa.array(_Renamed(chunk, kind)) for chunk in column.chunks], kind)


def _is_laid_out_as(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one.unit == other.unit and (one.tz is None) == (other.tz is None)
    if one.id != other.id or not pa.types.is_nested(one):
        return bool(one.equals(other, check_metadata=False))
    return one.num_fields == other.num_fields and all(
        _is_laid_out_as(one.field(index).type, other.field(index).type) for index in range(one.num_fields)
    )


def _refuse(given: pa.DataType, wanted: pa.DataType) -> NoReturn:
    raise TypeError(f"{given} is not laid out as {wanted}")


def small_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that Spark sends."""
    return pa.schema([_small(field) for field in schema])


def _small(field: pa.Field) -> pa.Field:
    """Return a field with the types that Spark sends: others have offsets of eight bytes."""
    kind = field.type
    if pa.types.is_large_string(kind):
        kind = pa.string()
    elif pa.types.is_large_binary(kind):
        kind = pa.binary()
    elif pa.types.is_large_list(kind):
        kind = pa.list_(_small(kind.value_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_small(kind.field(index)) for index in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_small(kind.key_field), _small(kind.item_field))
    return field.with_type(kind)
