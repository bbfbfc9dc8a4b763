"""One launch, from its directory to its exit code: start, run epochs, end for one reason.

What writes its epochs is put together in :mod:`.epoch_parts`; what happens meanwhile is watched in
:mod:`.query_watch`.
"""

from __future__ import annotations

import traceback

from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.registry import kind, source_of
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError
from airflow_provider_sinks.core.errors import (
    ExitCode,
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
)
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.retries import RETRIES, schema_met
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.account import EpochResult
from airflow_provider_sinks.streaming.analysis import demand_analysable
from airflow_provider_sinks.streaming.cluster_files import ClusterFiles
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.epoch_parts import put_together
from airflow_provider_sinks.streaming.epoch_size import EPOCH_BYTES, EpochSize, FirstEpoch
from airflow_provider_sinks.streaming.epoch_size import SETTING as BYTES_SETTING
from airflow_provider_sinks.streaming.failures import unexpected
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.health import HealthWatch
from airflow_provider_sinks.streaming.lookups import Lookups
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.query_watch import QueryWatch
from airflow_provider_sinks.streaming.reporter import Reporter
from airflow_provider_sinks.streaming.session import open_session
from airflow_provider_sinks.streaming.sink_query import SinkQuery
from airflow_provider_sinks.streaming.source_reading import SourceReading
from airflow_provider_sinks.streaming.start import Start, Started
from airflow_provider_sinks.streaming.torn_epoch import judged
from airflow_provider_sinks.streaming.warm_up import warm_up

_LAST_EPOCH_SECONDS = 10.0


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
        self._source = source_of(spec, connections)

    def run(self) -> None:
        """Start, run epochs until there is a reason to end.

        :raises SinkError: the reason, unless it is that all is done or that somebody asked to stop.
        """
        spark = open_session(self._spec.name, kind(self._spec).writer_module)
        context = spark.sparkContext
        self._reporter.change(
            SinkState.STARTING,
            spark_ui_url=context.uiWebUrl or "",
            spark_app_id=context.applicationId or "",
        )
        start = Start(spark, self._spec, self._launch, self._connections, self._reporter.waits)
        warmup = warm_up(spark, self._spec, start.connector)
        source: SourceReading | None = None
        try:
            if self._comes_late():
                return
            source = SourceReading.of(spark, self._spec, self._connections, self._patience)
            output = demand_analysable(spark, source.spec, self._lookups.without_rows())
            start.expect(output)
            looked = start.advise()
            if warmup is not None:
                warmup.demand()  # a start that cannot write must not stop a run that can
            if self._comes_late():
                return
            started = start.run(looked)
            self._stream(spark, start, started, source)
        finally:
            start.close()
            if source is not None:
                source.close()

    def _comes_late(self) -> bool:
        """Say whether the launch is to end before the start: it must not fence its successor.

        Asked right before the fence too, as what comes before it may wait for longer than a retry takes.
        """
        why = self._files.end_wanted()
        if why is not None:
            say(f"{why}: ending before the start")
        return why is not None

    def _stream(self, spark: SparkSession, start: Start, started: Started, source: SourceReading) -> None:
        size = self._epoch_size(spark, start, started)
        self._report_running(started)
        target = start.connector
        guard = Guard(started.identities, start.look, target.demand_in_force, self._patience, target.service)
        health = HealthWatch(target)
        query = SinkQuery(
            source.spec, self._lookups, self._source.spark_options(), target.project, source.written
        )
        watch = QueryWatch(
            self._spec,
            files=self._files,
            reporter=self._reporter,
            guard=guard,
            health=health,
            patience=self._patience,
            size=size,
            learns=source.learns,
        )

        def finished(result: EpochResult) -> None:
            account = started.account
            watch.epoch_is_whole()
            source.epoch_is_whole()
            self._reporter.epoch(result, account.sums(), account.writers, start.source_end_offsets)
            size.note(sum(result.positions.values()), sum(report.size_bytes for report in result.reports))

        met = RETRIES[schema_met(row_wise=self._spec.shape.row_wise)]
        learns = source.learns if met.epoch.goes_on() else _never
        epochs = put_together(
            spark,
            self._spec,
            self._source,
            target,
            query=query,
            started=started,
            first=FirstEpoch.of(size, start.records_waiting(started.account.positions)),
            guard=guard,
            patience=self._patience,
            learns=learns,
            finished=finished,
        )
        guard.start()
        health.start()
        try:
            watch.until_done(spark, lambda: query.start(spark, started, epochs, size.begin()), epochs)
            if self._spec.replay is not None:
                epochs.leave_whole()
        except SetAsideError:
            raise  # nothing is there that a start would refuse: the same records are read again
        except RefusedError as refused:
            spark.sparkContext.cancelAllJobs()
            target.end_open(started.account.writers)
            epochs.give_up(_LAST_EPOCH_SECONDS)
            raise judged(refused, start, self._reporter, started.account) from refused
        except Exception as error:
            if isinstance(error, JobFailedError) or not isinstance(error, SinkError):
                _demand_no_successor(target)
            raise
        finally:
            health.close()
            guard.close()

    def _report_running(self, started: Started) -> None:
        account = started.account
        self._reporter.change(
            SinkState.RUNNING,
            run=started.run,
            generation=started.generation,
            epoch=account.newest.epoch,
            rows_total=account.sums()[0],
            dead_total=account.sums()[1],
            rows_before=account.newest.rows_before,
            dead_before=account.newest.dead_before,
            positions=dict(account.positions),
            identities=started.identities,
            writers=tuple(sorted(account.writers)),
            waits_for="",
        )

    def _epoch_size(self, spark: SparkSession, start: Start, started: Started) -> EpochSize:
        records_max = self._spec.source.kafka.max_offsets_per_epoch
        bytes_max = int(spark.conf.get(BYTES_SETTING, str(EPOCH_BYTES)) or EPOCH_BYTES)
        position = sum(started.account.positions.values())
        return EpochSize(records_max, bytes_max, start.source_record_bytes, position)
