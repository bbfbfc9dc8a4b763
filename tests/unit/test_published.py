"""What everybody may see of a launch is always small, and tells what counts."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sinks.core.published import PUBLISHED_BYTES_MAX, published
from airflow_provider_sinks.core.status import SinkState, SinkStatus, StatusError

RUNNING = SinkStatus("orders", 3, SinkState.RUNNING, epoch=7, rows=10, spark_ui_url="http://worker:4040")


def test_it_says_how_the_launch_does() -> None:
    document = published(RUNNING)

    assert (document["sink"], document["launch"], document["state"]) == ("orders", 3, "running")
    assert (document["epoch"], document["rows"]) == (7, 10)
    assert document["spark_ui_url"] == "http://worker:4040"
    assert document["error"] is None
    assert document["follow_connections"] is True
    assert published(RUNNING, follows=False)["follow_connections"] is False


@pytest.mark.parametrize(
    ("lag", "total"),
    [
        pytest.param({}, None, id="not-known-yet"),
        pytest.param({0: 0}, 0, id="none"),
        pytest.param({0: 3, 1: 4}, 7, id="some"),
    ],
)
def test_lag_is_one_number(lag: dict[int, int], total: int | None) -> None:
    status = SinkStatus("orders", 1, lag=lag)

    assert published(status)["lag"] == total


def test_thousands_of_partitions_do_not_make_it_larger() -> None:
    many = dict.fromkeys(range(10_000), 2**60)
    status = SinkStatus("orders", 1, lag=many, positions=many, writers=tuple(f"p{p}" for p in many))

    assert len(json.dumps(published(status))) < 1_000


@pytest.mark.parametrize("letter", ["x", "é", '"', "\n", "😀"])
def test_long_errors_are_cut_until_they_fit(letter: str) -> None:
    error = StatusError("RefusedError", "output is lost", letter * 50_000, letter * 50_000)
    document = published(SinkStatus("orders", 1, SinkState.REFUSED, error=error))

    assert len(json.dumps(document)) <= PUBLISHED_BYTES_MAX
    assert document["error"]["primary"] == "output is lost"
    assert document["error"]["hint"].endswith("…")


def test_the_hint_is_the_last_to_be_cut() -> None:
    error = StatusError("RefusedError", "output is lost", "d" * 9_000, "accept=start_over-1234 " * 40)

    document = published(SinkStatus("orders", 1, SinkState.REFUSED, error=error))

    assert document["error"]["hint"] == error.hint
    assert document["error"]["detail"].endswith("…")
