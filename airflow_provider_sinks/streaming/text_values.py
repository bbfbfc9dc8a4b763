"""Values that must be text: which of them are not, judged on Arrow's columns as Spark judges its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

NOT_UTF8 = "The value is not UTF-8; `format: bytes` takes it."


def errors_of_text(values: pa.Array) -> pa.Array:
    """Return of each value why it is no text, or null.

    :param values: of bytes; a null is as good as a text.
    """
    try:
        pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if _is_text(value) else NOT_UTF8 for value in values], pa.string())
    return pa.nulls(len(values), pa.string())


def _is_text(value: pa.Scalar) -> bool:
    try:
        pc.cast(value, pa.string())
    except pa.ArrowInvalid:
        return False
    return True
