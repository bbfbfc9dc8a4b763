"""How much of a dead letter's content a person is shown. Pure.

>>> shown(b'{"id": 7, "name": "Ann", "tags": ["a"]}', Mask.VALUES)
'{"id": "<number>", "name": "<text of 3>", "tags": ["<text of 1>"]}'
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import Any


class Mask(enum.StrEnum):
    """What is hidden."""

    NONE = "none"
    """Nothing."""
    VALUES = "values"
    """The values of JSON: names of fields and types stay. Of anything else, all but its size."""
    ALL = "all"
    """Everything but size and digest."""


def shown(content: bytes | None, mask: Mask) -> str | None:
    """Return a key, value or header as text, as far as it may be seen; ``None`` for none.

    What is not UTF-8 is shown as hexadecimal digits.
    """
    if content is None:
        return None
    match mask:
        case Mask.NONE:
            return _text(content)
        case Mask.VALUES:
            return _shape(content)
        case Mask.ALL:
            return f"<{len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}>"


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"0x{content.hex()}"


def _shape(content: bytes) -> str:
    """Return JSON without its values; of anything else, the size."""
    try:
        found = json.loads(content)
        if isinstance(found, dict | list):
            text = json.dumps(_masked(found), ensure_ascii=False)
            return text.encode(errors="backslashreplace").decode()  # a name may hold half a surrogate pair
    except (ValueError, RecursionError):
        pass
    return f"<{len(content):,} bytes>"


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _masked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_masked(part) for part in value]
    if isinstance(value, str):
        return f"<text of {len(value)}>"
    if isinstance(value, bool):
        return "<boolean>"
    return "<number>" if isinstance(value, int | float) else None
