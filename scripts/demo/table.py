"""Tables for people: of names and values, and with a line for each of something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(rows: Mapping[str, int | float | str]) -> str:
    """Return the rows as lines, numbers with their thousands apart and all values flush right."""
    values = {name: _text(value) for name, value in rows.items()}
    left = max(map(len, values), default=0)
    right = max(map(len, values.values()), default=0)
    rule = "-" * (left + 2 + right)
    return "\n".join([rule, *(f"{name:<{left}}  {value:>{right}}" for name, value in values.items()), rule])


def grid(names: Sequence[str], lines: Sequence[Sequence[str | int]]) -> str:
    """Return lines under the names of their columns: texts flush left, numbers right."""
    columns = [[name, *map(_text, values)] for name, *values in zip(names, *lines, strict=True)]
    is_text = [isinstance(value, str) for value in lines[0]]
    aligned = [
        [f"{cell:{'<' if left else '>'}{max(map(len, column))}}" for cell in column]
        for column, left in zip(columns, is_text, strict=True)
    ]
    head, *rest = ["  ".join(cells) for cells in zip(*aligned, strict=True)]
    rule = "-" * len(head)
    return "\n".join([rule, head, rule, *rest, rule])


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}"
