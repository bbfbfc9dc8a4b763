"""Durations: with units, canonical, and the same after a round trip."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_sinks.core.spec.durations import format_duration, parse_duration
from airflow_provider_sinks.core.spec.problems import UnfitError


@pytest.mark.parametrize(
    ("text", "duration", "canonical"),
    [
        ("500ms", timedelta(milliseconds=500), "500ms"),
        ("60s", timedelta(minutes=1), "1m"),
        ("90s", timedelta(seconds=90), "90s"),
        ("1.5s", timedelta(milliseconds=1500), "1500ms"),
        ("120m", timedelta(hours=2), "2h"),
        ("7d", timedelta(days=7), "7d"),
        ("0s", timedelta(0), "0s"),
    ],
)
def test_written_and_canonical(text: str, duration: timedelta, canonical: str) -> None:
    assert parse_duration(text) == duration
    assert format_duration(duration) == canonical
    assert parse_duration(canonical) == duration


@pytest.mark.parametrize(
    "value",
    [
        "60",
        60,
        1.5,
        None,
        True,
        "",
        "s",
        "-1s",
        "1 s",
        "1s\n",
        "1e3s",
        "1w",
        "1S",
        "٣s",
        ["1s"],
        "999999999999d",
        timedelta(seconds=-1),
        timedelta(microseconds=5),
        timedelta(days=40_000),
    ],
)
def test_what_is_no_duration(value: Any) -> None:
    with pytest.raises(UnfitError):
        parse_duration(value)
