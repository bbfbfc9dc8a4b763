"""What a commit says of the rows of a file: how many, and the bounds of columns, by which readers skip it.

A bound must never be narrower than the rows, or readers would miss some. So what JSON, or a reader, may round
has none: large decimals, NaN and infinity. And delta-rs's reader of data sets takes a bound that is not there
for one that no row is within. So a file of which any column has values and no bounds has the number of its
rows alone. Bytes need none: nobody skips a file by them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sinks.connectors.delta.rounding import is_rounded

_COLUMNS = "delta.dataSkippingNumIndexedCols"
_COLUMNS_DEFAULT = 32
_TEXT_MAX = 32
_LAST_CHARACTER = chr(0x10FFFF)


@dataclass
class _Column:
    """One column, so far."""

    nulls: int = 0
    least: Any = None
    greatest: Any = None
    is_bounded: bool = True
    is_bytes: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether its bounds are known, or nobody asks for them."""
        known = _least(self.least) is not None and _greatest(self.greatest) is not None
        return self.is_bytes or (self.is_bounded and known)

    def take(self, values: pa.ChunkedArray) -> None:
        self.nulls += values.null_count
        if self.is_bounded and _has_nan(values):
            self.is_bounded = False
        if not self.is_bounded or values.null_count == len(values):
            return
        found = pc.min_max(values)
        try:
            least, greatest = found["min"].as_py(), found["max"].as_py()
        except (ValueError, OverflowError):  # no date of Python's
            self.is_bounded = False
            return
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)


@dataclass
class Statistics:
    """The statistics of one file while it is written.

    :param names: the columns that have bounds; those that are nested have none.
    """

    rows: int = 0
    columns: dict[str, _Column] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: pa.Schema, properties: Mapping[str, str]) -> Statistics:
        """Return those of no rows.

        :param properties: of the table, which say of how many columns there are any.
        """
        count = int(properties.get(_COLUMNS, _COLUMNS_DEFAULT))
        fields = list(schema)[: count if count >= 0 else None]
        found = {
            one.name: _Column(is_bounded=_can_be_bounded(one.type), is_bytes=pa.types.is_binary(one.type))
            for one in fields
        }
        return cls(0, {one.name: found[one.name] for one in fields if not pa.types.is_nested(one.type)})

    def take(self, rows: pa.Table) -> None:
        """Take rows that are written."""
        self.rows += rows.num_rows
        for name, column in self.columns.items():
            column.take(rows.column(name))

    def to_json(self) -> str:
        """Write them as a commit has them."""
        bounded = [(name, one) for name, one in self.columns.items() if one.is_bounded]
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": _known((name, _least(one.least)) for name, one in bounded),
                "maxValues": _known((name, _greatest(one.greatest)) for name, one in bounded),
                "nullCount": {name: one.nulls for name, one in self.columns.items()},
            }
            if all(one.nulls == self.rows or one.has_bounds for one in self.columns.values())
            else {"numRecords": self.rows},
            allow_nan=False,
        )


def _known(found: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in found if value is not None}


def _can_be_bounded(kind: pa.DataType) -> bool:
    return not (is_rounded(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind))


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _least(value: Any) -> Any:
    if _is_zero(value):
        return -0.0
    return value[:_TEXT_MAX] if isinstance(value, str) else _plain(value)


def _greatest(value: Any) -> Any:
    if _is_zero(value):
        return 0.0
    if isinstance(value, str) and len(value) > _TEXT_MAX:
        is_last = value[_TEXT_MAX] == _LAST_CHARACTER
        return None if is_last else f"{value[:_TEXT_MAX]}{_LAST_CHARACTER}"
    return _plain(value)


def _is_zero(value: Any) -> bool:
    """Whether it is one of the two zeros, which some readers tell from each other."""
    return isinstance(value, float) and value == 0


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; nothing where it has none."""
    match value:
        case datetime():
            text = value.strftime("%H:%M:%S.%f")
            return f"{value.date().isoformat()}T{text}{'Z' if value.tzinfo is not None else ''}"
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case float() if not math.isfinite(value):
            return None
    return value
