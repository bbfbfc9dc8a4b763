"""What a driver says that met a changed output, or a target that has forgotten something."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import JobFailedError, RefusedError, SinkError
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.reporter import Reporter
from airflow_provider_sinks.streaming.torn_epoch import judged
from tests.facts import IDENTITIES, observation, record, request

FOLDER = "/checkpoints/1"
REFUSED = RefusedError("progress was rolled back while the sink ran")
ACCOUNT = Account(
    record(epoch=6, checkpoint=FOLDER),
    {0: 20, 1: 20},
    {DRIVER: (0, 0), "p0": (20, 0), "p1": (20, 0)},
    {DRIVER, "p0", "p1"},
)
"""Two writers with 20 rows each, in six epochs."""


def seen(p0_rows: int, p1_rows: int, p1_end: int = 20) -> Observation:
    """What the target says now; of what ``p0`` wrote, a part may be gone."""
    start = {0: 10, 1: 10}
    driver = record(
        epoch=4, from_=start, to=start, checkpoint=FOLDER, batch=-1, totals={"p0": (10, 0), "p1": (10, 0)}
    )
    p0 = record(epoch=5, from_=start, to={0: p0_rows, 1: 10}, checkpoint=FOLDER, batch=0, rows_total=p0_rows)
    p1 = record(epoch=6, from_={0: 20, 1: 10}, to={0: 20, 1: p1_end}, checkpoint=FOLDER, batch=1)
    records = {DRIVER: driver, "p0": p0, "p1": record(**{**vars(p1), "rows_total": p1_rows})}
    return observation(history=History(records), checkpoint=CheckpointFacts(FOLDER, 1, 2))


def reporter() -> Reporter:
    """The status of that run, as it stood before."""
    status = SinkStatus(
        sink="orders",
        launch=3,
        state=SinkState.RUNNING,
        run="run-1",
        owner="us",
        generation=1,
        epoch=6,
        rows=20,
        rows_total=40,
        positions={0: 20, 1: 20},
        identities=IDENTITIES,
    )
    files: Any = SimpleNamespace(write_status=lambda _: None)
    return Reporter(files, status)


def told(now: Observation, reports: Reporter) -> SinkError:
    """What the driver ends with, where a start decides on what is there now."""
    start: Any = SimpleNamespace(observe=lambda: now, decide_on=lambda o, w: decide(o, request(witness=w)))
    return judged(REFUSED, start, reports, ACCOUNT)


def test_what_the_target_forgot_is_refused_with_the_ways_on_and_stays_known_to_airflow() -> None:
    now, reports = seen(p0_rows=10, p1_rows=20), reporter()

    error = told(now, reports)

    assert isinstance(error, RefusedError)
    assert 'progress of sink "orders" was rolled back' in error.primary
    assert "start_over" in error.hint
    assert reports.status.rows_total == 40
    assert decide(now, request(witness=reports.status.witness())).kind is VerdictKind.REFUSE


def test_rows_that_another_writer_added_meanwhile_hide_nothing() -> None:
    reports = reporter()

    error = told(seen(p0_rows=10, p1_rows=120, p1_end=120), reports)

    assert isinstance(error, RefusedError)
    assert reports.status.rows_total == 40


def test_a_torn_epoch_is_counted_and_a_retry_helps_where_a_start_would_go_on() -> None:
    reports = reporter()

    error = told(seen(p0_rows=20, p1_rows=30, p1_end=30), reports)

    assert isinstance(error, JobFailedError)
    assert reports.status.rows_total == 50
