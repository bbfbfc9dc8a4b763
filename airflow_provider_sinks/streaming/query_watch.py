"""Watches the streaming query of a launch: for what it ends, and whether it is started again.

The main thread only watches. Epochs run where Spark calls them, the guard looks from a thread of its own, and
whoever fails first is the reason that is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.retries import RETRIES, Trouble, schema_met
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.epoch_size import EpochSize
from airflow_provider_sinks.streaming.epochs import Epochs
from airflow_provider_sinks.streaming.failures import ended_by_metrics, explain, met_an_older_driver
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.health import HealthWatch
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.reporter import Reporter
from airflow_provider_sinks.streaming.session import silenced

_WATCH_SECONDS = 0.25
_FORGET_SECONDS = 30.0


class QueryWatch:
    """The main thread of a driver, as long as its query runs.

    :param files: say whether somebody asked to stop.
    :param reporter: told every few seconds that the driver lives.
    :param guard: its failure ends the query.
    :param health: what is reported of the target.
    :param patience: ends the query where a service was silent for too long.
    :param size: how many records an epoch may hold; a change needs the query to begin again.
    :param learns: told why the query failed; says whether it knows a schema now that was missing.
    """

    def __init__(
        self,
        spec: SinkSpec,
        *,
        files: LaunchFiles,
        reporter: Reporter,
        guard: Guard,
        health: HealthWatch,
        patience: Patience,
        size: EpochSize,
        learns: Callable[[BaseException], bool],
    ) -> None:
        self._spec = spec
        self._files = files
        self._reporter = reporter
        self._guard = guard
        self._health = health
        self._patience = patience
        self._size = size
        self._learns = learns
        self._failed_at: float | None = None
        self._overlaps = 0

    def epoch_is_whole(self) -> None:
        """Forget that the query failed before: it goes on. Called from the thread of the epochs."""
        self._failed_at = None

    def until_done(self, spark: SparkSession, begin: Callable[[], StreamingQuery], epochs: Epochs) -> None:
        """Start the query, again where it can go on, and wait until all is done or somebody asks to stop.

        :param begin: starts it from where its checkpoint is.
        :param epochs: what it calls.
        :raises SinkError: the reason for another end.
        """
        while not self._is_done(begin(), epochs):
            _wait_until_forgotten(spark, self._spec.name)
            epochs.go_on()

    def _is_done(self, query: StreamingQuery, epochs: Epochs) -> bool:
        """Wait for the end of the query, a request to stop, or a refusal.

        :returns: whether the job is done; else the query must be started again.
        """
        guard = self._guard
        while True:
            if guard.failure is not None:
                raise guard.failure
            if (gave_up := self._patience.exhausted) is not None:
                raise gave_up
            self._reporter.alive(self._patience.waits_for, self._health.health, self._health.metrics)
            try:
                if query.awaitTermination(_WATCH_SECONDS):  # type: ignore[arg-type]  # parts of seconds too
                    return True
            except StreamingQueryException as error:
                if guard.failure is None and self._begins_again_after(error, epochs):
                    return False
                raise guard.failure or explain(epochs.failure, error, self._spec.name) from error
            why = self._files.end_wanted()
            if why is not None and epochs.running.acquire(timeout=_WATCH_SECONDS):
                say(f"{why}: ending between two epochs")
                _end_between_epochs(query, epochs)
                return True
            if self._size.has_changed() and epochs.running.acquire(timeout=_WATCH_SECONDS):
                say(f"epochs hold at most {self._size.records:,} records from now on")
                _end_between_epochs(query, epochs)
                return False

    def _begins_again_after(self, error: StreamingQueryException, epochs: Epochs) -> bool:
        """Return whether the query is to be started again, from where its checkpoint is.

        The stream of a stateful query reads by the schemas that were known when it was planned.
        """
        if epochs.failure is None and self._goes_on_after(error):
            return True
        met = RETRIES[schema_met(row_wise=self._spec.shape.row_wise)]
        if not met.query.goes_on() or not self._learns(error):
            return False
        epochs.failure = None
        return True

    def _goes_on_after(self, error: StreamingQueryException) -> bool:
        """Return whether a query that ended outside of an epoch is to be started again."""
        if ended_by_metrics(error):
            say("Spark ended the query after it repeated an epoch (SPARK-57438); starting it again")
            return RETRIES[Trouble.LAG_UNCOUNTED].query.goes_on()
        if met_an_older_driver(error):
            self._overlaps += 1
            self._guard.demand_in_force()
            say("an older driver of this sink wrote into its checkpoint last; starting the query again")
            return RETRIES[Trouble.OVERLAP].query.goes_on(times=self._overlaps)
        found = explain(None, error, self._spec.name)
        retry, failed_at = RETRIES[found.trouble].query, self._failed_at or time.monotonic()
        seconds = time.monotonic() - failed_at
        if not retry.goes_on(seconds=seconds, patience_seconds=self._patience.bound_seconds):
            return False
        self._failed_at = failed_at
        say(f"{found.primary}; starting the query again")
        time.sleep(retry.pause_seconds)
        return True


def _end_between_epochs(query: StreamingQuery, epochs: Epochs) -> None:
    """Stop the query while no epoch runs.

    The lock is held on entry, so that none runs, and given back before Spark is asked: its thread may be
    waiting for it to begin an epoch, which then ends at once.
    """
    epochs.stop()
    epochs.running.release()
    try:
        with silenced():
            query.stop()
    except Exception as error:  # noqa: BLE001  what is committed is whole, however Spark ends
        say(f"Spark did not stop in order: {error}")


def _wait_until_forgotten(spark: SparkSession, name: str) -> None:
    """Wait until Spark has struck a query that ended off its list: it starts no second one of a name."""
    deadline = time.monotonic() + _FORGET_SECONDS
    while any(query.name == name for query in spark.streams.active) and time.monotonic() < deadline:
        time.sleep(_WATCH_SECONDS)
