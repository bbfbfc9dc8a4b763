"""May a value that was written by one Avro schema be read by another? With reasons, by field.

The rules are Avro's own (*Schema Resolution* of its specification), and one more: what a number counts must
not change. A registry's answer counts, and these say why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.core.schemas.avro_types import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)

_WIDENS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""What a written type may be read as."""
_UNITS = frozenset(
    {
        "date",
        "decimal",
        "local-timestamp-micros",
        "local-timestamp-millis",
        "time-micros",
        "time-millis",
        "timestamp-micros",
        "timestamp-millis",
    }
)
"""Logical types that say what a number counts: it means another thing by any other."""


def unreadable(reader: AvroSchema, writer: AvroSchema) -> tuple[str, ...]:
    """Return why values written by one schema cannot be read by another; nothing where they can."""
    return tuple(dict.fromkeys(_Resolution(reader, writer).misfits(reader.type, writer.type, "")))


def same_bytes(one: AvroSchema, other: AvroSchema) -> bool:
    """Whether both write every value alike: names of types, docs and defaults do not count."""
    return _shape(one.type) == _shape(other.type)


def leaves(schema: AvroSchema) -> tuple[tuple[str, str], ...]:
    """Return each field that is no record, with how it is written."""
    return tuple(_leaves(schema.type, ""))


@dataclass
class _Resolution:
    reader: AvroSchema
    writer: AvroSchema
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def misfits(self, reads: AvroType, writes: AvroType, path: str) -> Iterator[str]:
        reads, writes = self.reader.resolve(reads), self.writer.resolve(writes)
        match reads, writes:
            case _, Union():
                for branch in writes.branches:
                    yield from self.misfits(reads, branch, path)
            case Union(), _ if any(self._reads(branch, writes) for branch in reads.branches):
                return
            case Record(), Record():
                yield from self._record_misfits(reads, writes, path)
            case Array(), Array():
                yield from self.misfits(reads.items, writes.items, f"{path}[]")
            case Map(), Map():
                yield from self.misfits(reads.values, writes.values, f"{path}[]")
            case Enum(), Enum():
                yield from _enum_misfits(reads, writes, path)
            case _ if not _is_read(reads, writes):
                yield _change(path, writes, reads)

    def _reads(self, reads: AvroType, writes: AvroType) -> bool:
        return next(self.misfits(reads, writes, ""), None) is None

    def _record_misfits(self, reads: Record, writes: Record, path: str) -> Iterator[str]:
        if (reads.name, writes.name) in self._seen:
            return
        self._seen.add((reads.name, writes.name))
        written = {one.name: one for one in writes.fields}
        for one in reads.fields:
            below = f"{path}.{one.name}" if path else one.name
            source = next((written[name] for name in (one.name, *one.aliases) if name in written), None)
            if source is not None:
                yield from self.misfits(one.type, source.type, below)
            elif not one.has_default:
                yield f"field {below} is missing in what was written, and has no default"
        self._seen.discard((reads.name, writes.name))


def _enum_misfits(reads: Enum, writes: Enum, path: str) -> Iterator[str]:
    lost = [symbol for symbol in writes.symbols if symbol not in reads.symbols]
    if lost and not reads.has_default:
        yield f"{_named(path)} may be {', '.join(lost)}, which the reader's enum has not"


def _is_read(reads: AvroType, writes: AvroType) -> bool:
    """Whether a type without parts is read as another one."""
    if isinstance(reads, Fixed) and isinstance(writes, Fixed):
        same = (reads.size, _last(reads.name)) == (writes.size, _last(writes.name))
        return same and _means_the_same(reads.logical, writes.logical)
    return isinstance(reads, Primitive) and isinstance(writes, Primitive) and _widens(reads, writes)


def _means_the_same(reads: Logical, writes: Logical) -> bool:
    """Whether a number that is written as the one is told as it was meant by the other.

    Avro resolves the plain types below, and Spark (``AvroDataToCatalyst``) takes the number by the reader's
    schema: milliseconds as microseconds, a day as a microsecond, cents as thousandths. Nobody converts.
    """
    if _UNITS.isdisjoint({reads.name, writes.name}):
        return True
    return reads == writes


def _widens(reads: Primitive, writes: Primitive) -> bool:
    if not _means_the_same(reads.logical, writes.logical):
        return False
    if reads.logical.name in _UNITS:
        return reads.kind == writes.kind
    return reads.kind == writes.kind or reads.kind in _WIDENS.get(writes.kind, ())


def _change(path: str, writes: AvroType, reads: AvroType) -> str:
    return f"{_named(path)} is written as {described(writes)} and read as {described(reads)}"


def _named(path: str) -> str:
    return f"field {path}" if path else "the value"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def described(kind: AvroType) -> str:
    """Return a type in one phrase."""
    match kind:
        case Primitive() | Fixed():
            return _described_leaf(kind)
        case Enum():
            return f"enum of {', '.join(kind.symbols)}"
        case Array() | Map():
            inner = kind.items if isinstance(kind, Array) else kind.values
            return f"{type(kind).__name__.lower()} of {described(inner)}"
        case Union():
            return " or ".join(map(described, kind.branches))
        case Record() | Named():
            return f"record {kind.name}"


def _described_leaf(kind: Primitive | Fixed) -> str:
    if kind.logical.name == "decimal":
        digits = f"decimal({kind.logical.precision},{kind.logical.scale})"
        return f"{digits} on {kind.size} bytes" if isinstance(kind, Fixed) else digits
    if isinstance(kind, Fixed):
        return f"fixed of {kind.size} bytes"
    return f"{kind.kind} ({kind.logical.name})" if kind.logical.name else kind.kind


def _shape(kind: AvroType) -> object:
    match kind:
        case Record():
            return "record", tuple((one.name, _shape(one.type)) for one in kind.fields)
        case Array() | Map():
            inner = kind.items if isinstance(kind, Array) else kind.values
            return type(kind).__name__, _shape(inner)
        case Union():
            return "union", tuple(map(_shape, kind.branches))
        case Enum() | Fixed():
            return replace(kind, name="")
        case _:
            return kind


def _leaves(kind: AvroType, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, Record):
        for one in kind.fields:
            yield from _leaves(one.type, f"{path}.{one.name}" if path else one.name)
    else:
        yield path or "value", described(kind)
