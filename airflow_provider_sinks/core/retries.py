"""What is tried again when something fails, by whom and for how long: one table for driver and Airflow. Pure.

Whoever meets a failure tries again as its row says. What it gives up is met by the next one::

    question      the driver asks a service again                       streaming/patience.py
    attempt       a writer's task runs again: by Spark, and so here     streaming/small_epochs.py
    epoch         the action of an epoch runs again, all its tasks      streaming/epoch_action.py
    query         Spark's query begins again where its checkpoint is    streaming/query_watch.py
    task          Airflow's next try of the task launches the sink      retry_policy.py
    after_change  so it does, where else a person is needed             operators/submit/retry_after_change.py

All of it is exact: writers are opened anew, behind their own fence, and leave out what is committed.

A start asks each question once: who starts a sink wants to know at once what is away. Where Spark's own
writer writes, an epoch is written again for a schema alone: what a failed attempt left, only Spark knows.
Two things are no failures: a connection that changed, for whose sake the same try launches the sink again,
and rows that are larger than was allowed for, for whose sake an epoch is written in smaller batches.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, assert_never

RETRIED_FOR = timedelta(minutes=15)
"""How long after a change it may be taken back: longer than an alteration watches its sinks (5 minutes by
default, and as long again once it has put the old options back), with the longest pause between two tries."""
_ATTEMPTS = 4
"""As often as Spark runs a task."""


class Trouble(enum.Enum):
    """What went wrong, as far as trying again depends on it. Each error of ours says its own."""

    SILENCE = "a service did not answer, or a writer's connection to it broke"
    DOUBT = "a commit was neither confirmed nor refused"
    STAGE_GONE = "what tasks had staged is gone before the driver commits it"
    STOPPED = "the job stopped in the middle, for whatever reason"
    SCHEMA_MET = "a record was written by a schema that had not been asked for"
    SCHEMA_MET_BY_STREAM = "so it was, and a query with a state reads by what was known when it began"
    LAG_UNCOUNTED = "Spark ended the query behind a whole epoch: it could not count its lag (SPARK-57438)"
    OVERLAP = "an older driver wrote into the checkpoint before it saw that a newer start took over"
    MISTAKE = "a person must change something: configuration, credentials, a row that no target takes"
    REFUSAL = "a person must choose a way on"
    FENCED = "a newer start took over"


class Bound(enum.Enum):
    """For how long something is tried again, where no number says it."""

    NEVER = "not at all"
    PATIENCE = "until the sink's `patience` is over"
    ALWAYS = "until it succeeds: each time more is known, or done, than before"
    TASK = "as often as the task has `retries`"


Limit: TypeAlias = Bound | int | timedelta
"""Or so often in all, the first time included; or for so long since a connection changed."""


@dataclass(frozen=True)
class Retry:
    """How one of those who meet a failure tries again.

    :param limit: what ends it.
    :param pause_seconds: before each time.
    """

    limit: Limit = Bound.NEVER
    pause_seconds: float = 0.0

    def goes_on(self, *, times: int = 1, seconds: float = 0.0, patience_seconds: float = 0.0) -> bool:
        """Return whether to try again.

        :param times: how often it was tried, the first time included.
        :param seconds: since it failed first; since the change, behind one.
        :param patience_seconds: the sink's.
        """
        match self.limit:
            case Bound.NEVER:
                return False
            case Bound.PATIENCE:
                return seconds <= patience_seconds
            case Bound.ALWAYS | Bound.TASK:
                return True
            case int():
                return times < self.limit
            case timedelta():
                return seconds < self.limit.total_seconds()
            case _:
                assert_never(self.limit)


_NEVER = Retry()


@dataclass(frozen=True, kw_only=True)
class Retries:
    """One row of the table; what it leaves out is not tried again."""

    question: Retry = _NEVER
    attempt: Retry = _NEVER
    epoch: Retry = _NEVER
    query: Retry = _NEVER
    task: Retry = _NEVER
    after_change: Retry = _NEVER


_SILENCE = Retries(
    question=Retry(Bound.PATIENCE, pause_seconds=1.0),
    attempt=Retry(_ATTEMPTS),
    epoch=Retry(Bound.PATIENCE, pause_seconds=4.0),
    query=Retry(Bound.PATIENCE, pause_seconds=1.0),
    task=Retry(Bound.TASK),
)
RETRIES: dict[Trouble, Retries] = {
    Trouble.SILENCE: _SILENCE,
    Trouble.DOUBT: _SILENCE,
    Trouble.STAGE_GONE: Retries(attempt=Retry(_ATTEMPTS), epoch=Retry(_ATTEMPTS), task=Retry(Bound.TASK)),
    Trouble.STOPPED: Retries(attempt=Retry(_ATTEMPTS), task=Retry(Bound.TASK)),
    Trouble.SCHEMA_MET: Retries(epoch=Retry(Bound.ALWAYS), task=Retry(Bound.TASK)),
    Trouble.SCHEMA_MET_BY_STREAM: Retries(query=Retry(Bound.ALWAYS), task=Retry(Bound.TASK)),
    Trouble.LAG_UNCOUNTED: Retries(query=Retry(Bound.ALWAYS), task=Retry(Bound.TASK)),
    Trouble.OVERLAP: Retries(query=Retry(_ATTEMPTS), task=Retry(Bound.TASK)),
    Trouble.MISTAKE: Retries(after_change=Retry(RETRIED_FOR)),
    Trouble.REFUSAL: Retries(),
    Trouble.FENCED: Retries(),
}


def schema_met(*, row_wise: bool) -> Trouble:
    """Return what it is for a query to meet a schema that had not been asked for."""
    return Trouble.SCHEMA_MET if row_wise else Trouble.SCHEMA_MET_BY_STREAM
