"""What a driver says when an output or the source changed in the middle of an epoch."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import JobFailedError, RefusedError, SinkError
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.wording import count
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.reporter import Reporter
from airflow_provider_sinks.streaming.start import Start


def judged(refused: RefusedError, start: Start, reporter: Reporter, account: Account) -> SinkError:
    """Return what a start would say now, which knows the ways on; if it would go on, a retry helps.

    Called behind the fence of the sink's writers, so what the records say now is what will stay. Where they
    say less than the run knows, its status is the only memory of the rest: it stays, and no retry helps.

    :param reporter: its status is brought up to what is committed.
    :param account: what the run knows to be committed.
    """
    try:
        observation = start.observe()
    except SinkError:
        return refused
    if account.is_ahead_of(observation.known):
        told = start.decide_on(observation, reporter.status.witness()).error()
        return told if isinstance(told, RefusedError) else refused
    torn = _count(observation.known, reporter)
    error = start.decide_on(observation, reporter.status.witness()).error()
    if isinstance(error, RefusedError):
        return RefusedError(error.primary, f"{error.detail} {torn}", error.hint)
    return JobFailedError(refused.primary, refused.detail, refused.hint)


def _count(history: History, reporter: Reporter) -> str:
    """Bring the status up to what is committed of the epoch that never became whole, and say how much."""
    known = reporter.status
    if history.in_force is None or history.in_force.run != known.run:
        return "How much of the epoch under way is committed, nobody knows."
    rows, dead = history.rows_total - known.rows_total, history.dead_total - known.dead_total
    reporter.change(
        known.state,
        rows=known.rows + rows,
        rows_total=history.rows_total,
        dead_total=history.dead_total,
        positions=history.known_positions(),
    )
    if not rows + dead:
        return "Nothing of the epoch under way is committed."
    return (
        f"Of the epoch under way {count(rows, 'row')} and {count(dead, 'dead letter')} are committed; "
        "their writers saw the recorded source topic after reading them."
    )
