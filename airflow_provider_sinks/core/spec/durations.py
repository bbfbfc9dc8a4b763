"""Durations as people write them: ``500ms``, ``60s``, ``5m``, ``1h``, ``7d``, or a ``timedelta``.

A bare number has no unit and is refused. The written form is canonical, so that ``60s`` and ``1m`` are the
same in JSON and lead to the same digest.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from airflow_provider_sinks.core.spec.problems import UnfitError

UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
PATTERN = r"^([0-9]{1,12}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)$"
LONGEST = timedelta(days=36_500)


def parse_duration(value: Any) -> timedelta:
    """Return the duration that was written.

    :raises UnfitError: there is no unit, or it is negative, or longer than a hundred years.
    """
    if isinstance(value, timedelta):
        duration = value
    elif isinstance(value, str) and (match := re.fullmatch(PATTERN, value, re.ASCII)):
        number, unit = float(match.group(1)), UNITS[match.group(2)]
        duration = number * unit if number <= LONGEST / unit else LONGEST * 2
    else:
        raise UnfitError(f"{value!r} is not a duration", "a number with ms, s, m, h or d, such as 60s")
    if duration < timedelta(0) or duration > LONGEST:
        raise UnfitError(f"{value!s} is out of range", "from 0s to 36500d")
    if duration % UNITS["ms"]:
        raise UnfitError(f"{value!s} is finer than a millisecond")
    return duration


def format_duration(duration: timedelta) -> str:
    """Write a duration in the largest unit that divides it."""
    for unit in reversed(UNITS):
        if duration and not duration % UNITS[unit]:
            return f"{duration // UNITS[unit]}{unit}"
    return "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "examples": ["500ms", "60s", "5m", "1h", "7d"]}),
]
"""A field that is a duration."""
