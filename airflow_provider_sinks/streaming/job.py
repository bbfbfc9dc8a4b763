"""One launch, from its directory to its exit code: start, run epochs, end for one reason.

The main thread only watches. Epochs run where Spark calls them, the guard looks from a thread of its own, and
whoever fails first is the reason that is reported.
"""

from __future__ import annotations

import time
import traceback

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError
from airflow_provider_sinks.core.errors import (
    ExitCode,
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.streaming.account import EpochResult
from airflow_provider_sinks.streaming.analysis import demand_analysable
from airflow_provider_sinks.streaming.cluster_files import ClusterFiles
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.epoch_size import EPOCH_BYTES, EpochSize
from airflow_provider_sinks.streaming.epoch_size import SETTING as BYTES_SETTING
from airflow_provider_sinks.streaming.epochs import Epochs
from airflow_provider_sinks.streaming.executors import Warmup
from airflow_provider_sinks.streaming.failures import ended_by_metrics, explain, unexpected
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.health import HealthWatch
from airflow_provider_sinks.streaming.lookups import Lookups
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.reporter import Reporter
from airflow_provider_sinks.streaming.session import open_session, silenced
from airflow_provider_sinks.streaming.sink_query import SinkQuery
from airflow_provider_sinks.streaming.source import CheckpointLog
from airflow_provider_sinks.streaming.source_identity import SourceLook
from airflow_provider_sinks.streaming.source_reading import SourceReading
from airflow_provider_sinks.streaming.start import Start, Started
from airflow_provider_sinks.streaming.torn_epoch import judged

_WATCH_SECONDS = 0.25
_LAST_EPOCH_SECONDS = 10.0
_FORGET_SECONDS = 30.0
_QUERY_AGAIN_SECONDS = 1.0


def run(files: LaunchFiles) -> ExitCode:
    """Run a launch to its end and return the exit code. Never raises."""
    launch = files.read()
    files = ClusterFiles.of(files, launch.status_uri) if launch.status_uri else files
    witness = Witness.from_mapping(launch.witness) if launch.witness else None
    status = SinkStatus.begun(str(launch.spec.get("name", "")), launch.number, launch.owner, witness)
    reporter = Reporter(files, status)
    try:
        connections = ResolvedConnections.from_json(files.take_connections())
        _Job(files, launch, SinkSpec.parse(launch.spec), connections, reporter).run()
    except SinkError as error:
        reporter.end(error)
        return error.exit_code
    except BaseException as error:  # noqa: BLE001  whatever it is becomes the reported reason
        say(traceback.format_exc())
        found = unexpected(error, status.sink)
        reporter.end(found)
        return found.exit_code
    finally:
        files.forget_connections()
    reporter.end(None)
    return ExitCode.OK


def _wait_until_forgotten(spark: SparkSession, name: str) -> None:
    """Wait until Spark has struck a query that ended off its list: it starts no second one of a name."""
    deadline = time.monotonic() + _FORGET_SECONDS
    while any(query.name == name for query in spark.streams.active) and time.monotonic() < deadline:
        time.sleep(_WATCH_SECONDS)


def _never(_: BaseException) -> bool:
    """Learn nothing within an epoch: the stream of a stateful query is planned once, and started again."""
    return False


def _demand_no_successor(target: SinkConnector) -> None:
    """Raise :class:`FencedError` if a newer start is in force: a driver that it overtook must not come back.

    Two drivers disturb each other in many words before the guard looks: Spark meets a foreign log in the
    checkpoint, or a file that is gone. Told as a failure, it would be retried, and fence the newer one.
    """
    try:
        target.demand_in_force()
    except FencedError:
        raise
    except Exception as error:  # noqa: BLE001  the reason that is known counts
        say(f"whether a newer start took over could not be seen: {error}")


class _Job:
    """The parts of one launch, put together."""

    def __init__(
        self,
        files: LaunchFiles,
        launch: Launch,
        spec: SinkSpec,
        connections: ResolvedConnections,
        reporter: Reporter,
    ) -> None:
        self._files = files
        self._spec = spec
        self._connections = connections
        self._reporter = reporter
        self._launch = launch
        self._patience = Patience(spec.patience)
        self._lookups = Lookups(spec, connections, self._patience)
        self._query_failed_at: float | None = None
        self._source: SourceReading | None = None
        self._size: EpochSize
        self._source_options = connections.get(spec.source.kafka.connection, KafkaOptions)

    def run(self) -> None:
        """Start, run epochs until there is a reason to end.

        :raises SinkError: the reason, unless it is that all is done or that somebody asked to stop.
        """
        writers = kind(self._spec).writer_module
        spark = open_session(self._spec.name, writers)
        context = spark.sparkContext
        self._reporter.change(
            SinkState.STARTING,
            spark_ui_url=context.uiWebUrl or "",
            spark_app_id=context.applicationId or "",
        )
        warmup = Warmup(spark, writers)
        start = Start(spark, self._spec, self._launch, self._connections, self._reporter.waits)
        try:
            if why := self._files.end_wanted():  # a launch that comes late must not fence its successor
                say(f"{why}: ending before the start")
                return
            source = self._source = SourceReading.of(spark, self._spec, self._connections, self._patience)
            output = demand_analysable(spark, source.spec, self._lookups.without_rows())
            start.connector.expect(output)
            started = start.run()
            warmup.demand()
            self._stream(spark, start, started)
        finally:
            start.close()
            if self._source is not None:
                self._source.close()

    def _stream(self, spark: SparkSession, start: Start, started: Started) -> None:
        size = self._size = self._epoch_size(spark, start, started)
        self._reporter.change(
            SinkState.RUNNING,
            run=started.run,
            generation=started.generation,
            epoch=started.account.newest.epoch,
            rows_total=started.account.sums()[0],
            dead_total=started.account.sums()[1],
            positions=dict(started.account.positions),
            identities=started.identities,
            writers=tuple(sorted(started.account.writers)),
            waits_for="",
        )
        target = start.connector
        guard = Guard(started.identities, start.look, target.demand_in_force, self._patience, target.service)
        assert self._source is not None  # noqa: S101  it was made before the start
        query = SinkQuery(
            self._source.spec, self._lookups, self._source_options, target.project, self._source.written
        )
        epochs = self._epochs(spark, query, start, started, guard)
        health = HealthWatch(target)
        guard.start()
        health.start()
        try:
            while not self._watch(query.start(spark, started, epochs, size.begin()), epochs, guard, health):
                _wait_until_forgotten(spark, self._spec.name)
                epochs.go_on()
            if self._spec.replay is not None:
                self._leave_whole(target, started)
        except SetAsideError:
            raise  # nothing is there that a start would refuse: the same records are read again
        except RefusedError as refused:
            spark.sparkContext.cancelAllJobs()
            target.end_open(started.account.writers)
            epochs.give_up(_LAST_EPOCH_SECONDS)
            raise judged(refused, start, self._reporter) from refused
        except Exception as error:
            if isinstance(error, JobFailedError) or not isinstance(error, SinkError):
                _demand_no_successor(target)
            raise
        finally:
            health.close()
            guard.close()

    def _leave_whole(self, target: SinkConnector, started: Started) -> None:
        """Record how far a replay has looked, also where its last letters led to nothing.

        A writer without a row leaves no record, and whoever asks for the same replay again would be told
        that it is under way.
        """
        account = started.account
        record = account.driver_record(account.newest)
        self._patience.ask(target.service, lambda: target.announce(record))

    def _epoch_size(self, spark: SparkSession, start: Start, started: Started) -> EpochSize:
        records_max = self._spec.source.kafka.max_offsets_per_epoch
        bytes_max = int(spark.conf.get(BYTES_SETTING, str(EPOCH_BYTES)) or EPOCH_BYTES)
        position = sum(started.account.positions.values())
        return EpochSize(records_max, bytes_max, start.source_record_bytes, position)

    def _epochs(
        self, spark: SparkSession, query: SinkQuery, start: Start, started: Started, guard: Guard
    ) -> Epochs:
        spec = self._spec
        target = start.connector

        def announce(record: ProgressRecord) -> None:
            self._patience.ask(target.service, lambda: target.announce(record))

        def finished(result: EpochResult) -> None:
            account = started.account
            self._query_failed_at = None
            self._reporter.epoch(result, account.sums(), account.writers, start.source_end_offsets)
            self._size.note(
                sum(result.positions.values()), sum(report.size_bytes for report in result.reports)
            )

        return Epochs(
            sink=spec.name,
            source_topic=spec.source.kafka.topic,
            log=CheckpointLog(spark, started.checkpoint, spec.source.kafka.topic),
            account=started.account,
            single=spec.writer_mode is Writers.SINGLE,
            stateful=not spec.shape.row_wise,
            driver_rows_max=query.driver_rows_max(spark),
            has_dead_letters=spec.dead_letter is not None,
            dead_letter_example=spec.dead_letter_example,
            target=target,
            to_rows=query.rows,
            check_before=guard.check_before,
            check_after=guard.check,
            demand_source=SourceLook(self._source_options.with_files_read()),
            patience=self._patience,
            announce=announce,
            finished=finished,
            limits=spec.set_aside_limits,
            learns=self._learns if spec.shape.row_wise else _never,
        )

    def _learns(self, error: BaseException) -> bool:
        return self._source is not None and self._source.learns(error)

    def _watch(self, query: StreamingQuery, epochs: Epochs, guard: Guard, health: HealthWatch) -> bool:
        """Wait for the end of the query, a request to stop, or a refusal.

        :returns: whether the job is done; else the query must be started again.
        """
        while True:
            if guard.failure is not None:
                raise guard.failure
            if (gave_up := self._patience.exhausted) is not None:
                raise gave_up
            self._reporter.alive(self._patience.waits_for, health.health, health.metrics)
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
                self._end_between_epochs(query, epochs)
                return True
            if self._size.has_changed() and epochs.running.acquire(timeout=_WATCH_SECONDS):
                say(f"epochs hold at most {self._size.records:,} records from now on")
                self._end_between_epochs(query, epochs)
                return False

    def _begins_again_after(self, error: StreamingQueryException, epochs: Epochs) -> bool:
        """Return whether the query is to be started again, from where its checkpoint is.

        The stream of a stateful query reads by the schemas that were known when it was planned.
        """
        if epochs.failure is None and self._goes_on_after(error):
            return True
        if self._spec.shape.row_wise or not self._learns(error):
            return False
        epochs.failure = None
        return True

    def _goes_on_after(self, error: StreamingQueryException) -> bool:
        """Return whether a query that ended outside of an epoch is to be started again."""
        if ended_by_metrics(error):
            say("Spark ended the query after it repeated an epoch (SPARK-57438); starting it again")
            return True
        found = explain(None, error, self._spec.name)
        if not isinstance(found, UnavailableError):
            return False
        self._query_failed_at = self._query_failed_at or time.monotonic()
        if time.monotonic() - self._query_failed_at > self._patience.bound_seconds:
            return False
        say(f"{found.primary}; starting the query again")
        time.sleep(_QUERY_AGAIN_SECONDS)
        return True

    def _end_between_epochs(self, query: StreamingQuery, epochs: Epochs) -> None:
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
