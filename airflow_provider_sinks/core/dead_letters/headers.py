"""The headers of a record: as they are, as text in a column of a table, and those that are a letter's own."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""Of a record, in their order; a name may stand there more than once."""

SOURCE_HEADER = "source.header."
"""What stands before the name of each header that the source record had."""


def headers_to_json(headers: Headers) -> str:
    """Write headers as JSON text: pairs of name and base64, as a column of a table holds them."""
    pairs = [[name, None if value is None else base64.b64encode(value).decode()] for name, value in headers]
    return json.dumps(pairs, separators=(",", ":"))


def headers_from_json(text: str | None) -> Headers:
    """Read what :func:`headers_to_json` wrote, or Spark did; nothing is no header."""
    pairs = json.loads(text) if text else []
    return tuple((name, None if value is None else base64.b64decode(value)) for name, value in pairs)


def text_headers(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Return the letter's own headers as texts; of two of a name, the first."""
    told: dict[str, str] = {}
    for name, value in headers:
        if value is not None and not name.startswith(SOURCE_HEADER):
            told.setdefault(name, value.decode(errors="replace"))
    return told


def whole(text: str | None) -> int | None:
    """Read a number; ``None`` for anything else."""
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else None
