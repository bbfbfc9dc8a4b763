"""Where to rewind to, as people write it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.lifecycle.rewind import LATEST
from airflow_provider_sinks.core.lifecycle.rewind_request import RewindRequest
from airflow_provider_sinks.core.progress.history import EARLIEST


@pytest.mark.parametrize(
    ("given", "offsets"),
    [
        ("0:120", {0: 120}),
        ("0:120,1:3", {0: 120, 1: 3}),
        (" 0=120  1:earliest , 2: LATEST ", {0: 120, 1: EARLIEST, 2: LATEST}),
        ({0: 120, "1": "earliest"}, {0: 120, 1: EARLIEST}),
    ],
)
def test_offsets_by_partition(given: Any, offsets: dict[int, int]) -> None:
    assert RewindRequest.parse(offsets=given).offsets == offsets


def test_a_time_has_a_zone() -> None:
    assert RewindRequest.parse(time="1970-01-01T01:00:01+01:00").time_ms == 1000
    assert RewindRequest.parse(time="1970-01-01T00:00:01Z").time == "1970-01-01T00:00:01Z"


def test_an_empty_field_of_a_form_is_nothing() -> None:
    assert RewindRequest.parse(offsets="", time="", epoch="7", generation="").epoch == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "none is given (give exactly one)"),
        ({"epoch": 3, "time": "1970-01-01T00:00:01Z"}, "time and epoch are given"),
        ({"offsets": "0:12,0:13"}, "offsets.0: is given twice"),
        ({"offsets": "0:erliest"}, 'did you mean "earliest"?'),
        ({"offsets": "-1:12"}, "'-1' is not a source partition"),
        ({"offsets": "0:-1"}, "'-1' is not an offset"),
        ({"time": "2026-11-20T22:00:00"}, "has no zone (such as 2026-11-20T22:00:00Z"),
        ({"time": "yesterday"}, "'yesterday' is not a time"),
        ({"epoch": 0}, "epoch: 0 is not one (a number from 1)"),
        ({"epoch": "x", "generation": "y"}, "generation: 'y' is not one"),
        ({"offsets": "0:1", "generation": 2}, "generation: says nothing without an epoch"),
        ({"epoch": 1, "skip": True}, "skip: says nothing without offsets"),
    ],
)
def test_what_is_unclear_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        RewindRequest.parse(**given)

    assert said in str(refused.value)
