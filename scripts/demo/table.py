"""A short table for people: names on the left, values on the right."""

from __future__ import annotations

from collections.abc import Mapping


def table(rows: Mapping[str, int | float | str]) -> str:
    """Return the rows as lines, numbers with their thousands apart and all values flush right."""
    values = {name: _text(value) for name, value in rows.items()}
    left = max(map(len, values), default=0)
    right = max(map(len, values.values()), default=0)
    rule = "-" * (left + 2 + right)
    return "\n".join([rule, *(f"{name:<{left}}  {value:>{right}}" for name, value in values.items()), rule])


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}"
