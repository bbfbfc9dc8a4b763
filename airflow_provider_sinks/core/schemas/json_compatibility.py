"""May a value that was written by one JSON Schema be read by another? With reasons, by field.

A registry's answer counts, and these say why. Fields that a schema does not name are not looked at: nobody
reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.schemas.json_types import (
    DECIMAL,
    INTEGER,
    NUMBER,
    ArrayOf,
    Bounds,
    JsonSchema,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Property,
    Scalar,
    known,
)

_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "": 64}


def unreadable(reader: JsonSchema, writer: JsonSchema) -> tuple[str, ...]:
    """Return why values written by one schema cannot be read by another; nothing where they can."""
    return tuple(dict.fromkeys(_misfits(reader.type, writer.type, "")))


def same_bytes(one: JsonSchema, other: JsonSchema) -> bool:
    """Whether both write every value alike: titles, bounds and what is required do not count."""
    return [*_leaves(one.type, "")] == [*_leaves(other.type, "")]


def leaves(schema: JsonSchema) -> tuple[tuple[str, str], ...]:
    """Return each field that has no parts, with how it is written."""
    return tuple(_leaves(schema.type, ""))


def _misfits(reads: JsonType, writes: JsonType, path: str) -> Iterator[str]:
    if isinstance(writes, Nullable) and not isinstance(reads, Nullable):
        yield f"{_named(path)} may be null in what was written, and never is to the reader"
    match known(reads), known(writes):
        case Object() as to, Object() as of:
            yield from _object_misfits(to, of, path)
        case ArrayOf() as to_list, ArrayOf() as of_list:
            yield from _misfits(to_list.items, of_list.items, f"{path}[]")
            yield from _bound_misfits(to_list.bounds, of_list.bounds, path)
        case MapOf() as to_map, MapOf() as of_map:
            yield from _misfits(to_map.values, of_map.values, f"{path}[]")
        case Scalar() as to_leaf, Scalar() as of_leaf if _is_read(to_leaf, of_leaf):
            yield from _value_misfits(to_leaf, of_leaf, path)
        case to_any, of_any:
            yield f"{_named(path)} is written as {described(of_any)} and read as {described(to_any)}"


def _object_misfits(reads: Object, writes: Object, path: str) -> Iterator[str]:
    written = {one.name: one for one in writes.properties}
    for one in reads.properties:
        below = f"{path}.{one.name}" if path else one.name
        if (source := written.get(one.name)) is None:
            if one.is_required:
                yield f"field {below} is missing in what was written, and is required"
        else:
            yield from _property_misfits(one, source, below)


def _property_misfits(reads: Property, writes: Property, path: str) -> Iterator[str]:
    if reads.is_required and not writes.is_required:
        yield f"field {path} may be missing in what was written, and is required"
    yield from _misfits(reads.type, writes.type, path)


def _is_read(reads: Scalar, writes: Scalar) -> bool:
    """Whether each value of a type is one of another type."""
    if (reads.kind, writes.kind) == (NUMBER, INTEGER):
        return reads.means != DECIMAL
    if reads.kind != writes.kind:
        return False
    if reads.kind == INTEGER:
        return _WIDTHS[reads.means] >= _WIDTHS[writes.means]
    if reads.means == DECIMAL == writes.means:
        return (reads.precision, reads.scale) == (writes.precision, writes.scale)
    return reads.means in ("", writes.means)


def _value_misfits(reads: Scalar, writes: Scalar, path: str) -> Iterator[str]:
    if reads.one_of is not None:
        if writes.one_of is None:
            yield f"{_named(path)} may be anything in what was written, and {_listed(reads)} to the reader"
        elif lost := [value for value in writes.one_of if value not in reads.one_of]:
            yield f"{_named(path)} may be {', '.join(map(str, lost))}, which the reader's enum has not"
    yield from _bound_misfits(reads.bounds, writes.bounds, path)


def _listed(kind: Scalar) -> str:
    return f"one of {', '.join(map(str, kind.one_of or ()))}"


def _bound_misfits(reads: Bounds, writes: Bounds, path: str) -> Iterator[str]:
    lower = (
        ("minimum", reads.least, writes.least),
        ("exclusiveMinimum", reads.more_than, writes.more_than),
        ("the least size", reads.shortest, writes.shortest),
    )
    upper = (
        ("maximum", reads.most, writes.most),
        ("exclusiveMaximum", reads.less_than, writes.less_than),
        ("the largest size", reads.longest, writes.longest),
    )
    for name, to, of in lower:
        if to is not None and (of is None or of < to):
            yield f"{_named(path)} has {name} {to} to the reader, and {of} in what was written"
    for name, to, of in upper:
        if to is not None and (of is None or of > to):
            yield f"{_named(path)} has {name} {to} to the reader, and {of} in what was written"
    if reads.step not in (None, writes.step):
        yield f"{_named(path)} is a multiple of {reads.step} to the reader"


def described(kind: JsonType) -> str:
    """Return a type in one phrase."""
    match kind:
        case Scalar():
            return _described_leaf(kind)
        case ArrayOf(items=inner) | MapOf(values=inner):
            return f"{'array' if isinstance(kind, ArrayOf) else 'map'} of {described(inner)}"
        case Nullable():
            return f"{described(kind.type)} or null"
        case Object():
            return "object"
        case Opaque():
            return "what no column is"


def _described_leaf(kind: Scalar) -> str:
    if kind.means == DECIMAL:
        return f"decimal({kind.precision},{kind.scale})"
    return f"{kind.kind} ({kind.means})" if kind.means else kind.kind


def _named(path: str) -> str:
    return f"field {path}" if path else "the value"


def _leaves(kind: JsonType, path: str) -> Iterator[tuple[str, str]]:
    match known(kind):
        case Object() as found:
            for one in found.properties:
                yield from _leaves(one.type, f"{path}.{one.name}" if path else one.name)
        case ArrayOf() as found_list:
            yield from _leaves(found_list.items, f"{path}[]")
        case MapOf() as found_map:
            yield from _leaves(found_map.values, f"{path}{{}}")
        case Scalar(kind="integer"):
            yield path or "value", INTEGER  # each width is written alike
        case other:
            yield path or "value", described(other)
