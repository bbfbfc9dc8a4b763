"""What writes the epochs of one launch, put together of what a spec, a target and a master make of it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.base import CommitsOn, SinkConnector
from airflow_provider_sinks.connectors.source import SinkSource
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import held_writers
from airflow_provider_sinks.streaming.account import EpochResult
from airflow_provider_sinks.streaming.copied_range import Copying
from airflow_provider_sinks.streaming.copy_tasks import CopyTasks, copying
from airflow_provider_sinks.streaming.driver_share import DriverShare
from airflow_provider_sinks.streaming.engine_action import EngineAction
from airflow_provider_sinks.streaming.epoch_action import EpochAction
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_size import FirstEpoch
from airflow_provider_sinks.streaming.epoch_tasks import EpochTasks, RowTasks
from airflow_provider_sinks.streaming.epochs import Epochs
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.sink_query import SinkQuery
from airflow_provider_sinks.streaming.source import CheckpointLog
from airflow_provider_sinks.streaming.source_identity import DemandSource
from airflow_provider_sinks.streaming.start import Started
from airflow_provider_sinks.streaming.warm_up import warm_up_late


def put_together(
    spark: SparkSession,
    spec: SinkSpec,
    source: SinkSource,
    target: SinkConnector,
    *,
    query: SinkQuery,
    started: Started,
    first: FirstEpoch,
    guard: Guard,
    patience: Patience,
    learns: Callable[[BaseException], bool],
    finished: Callable[[EpochResult], None],
) -> Epochs:
    """Return what ``foreachBatch`` calls. Called once, behind the announcement.

    :param first: what is known of the first epoch.
    :param learns: told why an action failed; says whether more is known now, and it is worth another try.
    :param finished: told of each whole epoch.
    """
    account = started.account
    held_writers.allow(target.capabilities().kept_writers)
    settings = EpochSettings.of(
        spec,
        target,
        driver=DriverShare.of(spark, spec),
        demand_source=DemandSource(source.look()),
    )
    action: EngineAction | EpochAction
    if target.capabilities().commits_on is CommitsOn.ENGINE:
        action = EngineAction(
            settings.sink,
            account=account,
            target=target,
            guard=guard,
            to_rows=query.rows,
            learns=learns,
        )
    else:
        action = EpochAction(
            settings,
            account=account,
            target=target,
            guard=guard,
            patience=patience,
            tasks=_tasks(
                spark, spec, settings, query=query, first=first, how=copying(spark, spec, source, target)
            ),
            learns=learns,
        )
    return Epochs(
        settings,
        log=CheckpointLog(spark, started.checkpoint, settings.source_topic),
        source_log=started.source_log,
        account=account,
        target=target,
        guard=guard,
        patience=patience,
        action=action,
        finished=finished,
    )


def _tasks(
    spark: SparkSession,
    spec: SinkSpec,
    settings: EpochSettings,
    *,
    query: SinkQuery,
    first: FirstEpoch,
    how: Copying | None,
) -> EpochTasks:
    """Return what runs tasks; workers that the first epoch needs are brought up while its query begins.

    :param how: records are copied; ``None`` where they become rows in Spark.
    """
    if how is not None:
        return CopyTasks(settings, how)
    tasks = RowTasks(settings, query.rows, first)
    if not tasks.begin_here:
        warm_up_late(spark, spec)
    return tasks
