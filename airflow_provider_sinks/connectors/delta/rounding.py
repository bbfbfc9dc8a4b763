"""Which decimals do not survive a number of JSON: bounds of a file are such numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT_DIGITS = 15


def is_rounded(kind: pa.DataType) -> bool:
    """Whether values of a type may have more digits than a float has."""
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind)) and bool(kind.precision > _EXACT_DIGITS)
