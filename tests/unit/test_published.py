"""What everybody may see of a launch is always small, and tells what counts."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sinks.core.launch.published import PUBLISHED_BYTES_MAX, published
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus, StatusError

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


LOST = StatusError("RefusedError", "data topic is missing", "", "accept=start_over-1234")
AT = "2026-11-22T05:00:00Z"
LATER = "2026-11-22T05:02:01Z"
S = SinkState


def _before(status: SinkStatus) -> dict[str, object]:
    return published(status)


REFUSED = _before(
    SinkStatus("orders", 3, S.REFUSED, "", generation=1, epoch=7, rows_total=90, dead_total=4, error=LOST)
)


def test_a_launch_that_knows_nothing_yet_shows_the_rows_and_the_epoch_that_are_known() -> None:
    shown = published(SinkStatus("orders", 4), before=REFUSED)

    assert [shown[name] for name in ("launch", "state")] == [4, "starting"]
    assert [shown[name] for name in ("generation", "epoch", "rows_total", "dead_total")] == [1, 7, 90, 4]


def test_what_a_launch_has_read_counts_and_so_does_a_newer_witness() -> None:
    reset = published(SinkStatus("orders", 4, S.RUNNING, "run", generation=2), before=REFUSED)
    witness = published(SinkStatus("orders", 4, generation=1, epoch=9, rows_total=99), before=REFUSED)

    assert (reset["generation"], reset["epoch"], reset["rows_total"], reset["dead_total"]) == (2, 0, 0, 0)
    assert (witness["epoch"], witness["rows_total"]) == (9, 99)


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        pytest.param(SinkStatus("orders", 4), True, id="starting"),
        pytest.param(SinkStatus("orders", 4, S.RUNNING, "run"), True, id="runs"),
        pytest.param(SinkStatus("orders", 4, S.STOPPED), True, id="stopped-before-the-start"),
        pytest.param(SinkStatus("orders", 4, S.FENCED, "run"), True, id="fenced"),
        pytest.param(SinkStatus("orders", 4, S.RUNNING, "run", rows=1), False, id="has-committed"),
        pytest.param(SinkStatus("orders", 4, S.RUNNING, "run", lag={0: 0}), False, id="an-epoch-has-ended"),
        pytest.param(
            SinkStatus("orders", 4, S.RUNNING, "run", started_at=AT, at=LATER), False, id="nothing-to-commit"
        ),
        pytest.param(SinkStatus("orders", 4, S.STOPPED, "run"), False, id="all-is-done"),
    ],
)
def test_the_newest_error_stays_with_its_hint_until_a_launch_has_committed(
    status: SinkStatus, kept: bool
) -> None:
    shown = published(status, before=REFUSED)["error"]

    assert shown == (REFUSED["error"] if kept else None)


def test_a_newer_error_takes_its_place() -> None:
    away = StatusError("UnavailableError", "Kafka could not be reached")

    shown = published(SinkStatus("orders", 4, S.FAILED, error=away), before=REFUSED)["error"]

    assert (shown["launch"], shown["primary"], shown["hint"]) == (4, "Kafka could not be reached", "")


def test_what_a_start_waits_for_is_there_while_it_lasts() -> None:
    waiting = SinkStatus("orders", 1, waits_for="somebody's open transaction " * 40)

    assert published(waiting)["waits_for"].startswith("somebody's open transaction")
    assert len(json.dumps(published(waiting))) <= PUBLISHED_BYTES_MAX
    assert waiting.one_line().startswith("starting, waits: somebody's")
    assert "waits_for" not in published(waiting.ended())


def test_how_the_target_does_is_told_once_it_was_asked() -> None:
    asked = SinkStatus("orders", 1, health="no broker answers", metrics={"transactional_ids": 3})

    assert "health" not in published(SinkStatus("orders", 1))
    assert published(asked)["health"] == "no broker answers"
    assert published(asked)["metrics"] == {"transactional_ids": 3}
