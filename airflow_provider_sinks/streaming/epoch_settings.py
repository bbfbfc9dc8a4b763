"""What stays the same for every epoch of a run, and the plan that one epoch makes of it for its tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_provider_sinks.connectors.base import CommitsOn, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import WriterFactory
from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import (
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_share import DriverShare
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan

STEP_ROWS = 1_000_000
STEP_SECONDS = 30.0
STEP_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class EpochSettings:
    """What stays the same for every epoch of a run.

    :param sink: the sink's name.
    :param source_topic: for messages.
    :param single: whether one writer writes everything.
    :param stateful: whether Spark keeps state for the plan; its tasks then run as they are, before a shuffle.
    :param driver: which epochs the driver writes itself.
    :param has_dead_letters: whether rows that did not parse have somewhere to go.
    :param dead_letter_example: how a person writes where.
    :param limits: how much a writer may set aside in one epoch.
    :param demand_source: what a task asks before its commit; see :mod:`.source_identity`.
    :param driver_commits: whether writers only stage their rows, and the driver commits them.
    :param factory: makes the target's writers.
    """

    sink: str
    source_topic: str
    single: bool
    stateful: bool
    driver: DriverShare
    has_dead_letters: bool
    dead_letter_example: str
    limits: SetAsideLimits
    demand_source: Callable[[Identity], None]
    driver_commits: bool
    factory: WriterFactory = field(repr=False)

    @classmethod
    def of(
        cls,
        spec: SinkSpec,
        target: SinkConnector,
        *,
        driver: DriverShare,
        demand_source: Callable[[Identity], None],
    ) -> EpochSettings:
        """Return what a spec and its target say, behind the announcement of the run."""
        return cls(
            sink=spec.name,
            source_topic=spec.source_topic,
            single=spec.writer_mode is Writers.SINGLE,
            stateful=not spec.shape.row_wise,
            driver=driver,
            has_dead_letters=spec.dead_letter is not None,
            dead_letter_example=spec.dead_letter_example,
            limits=spec.set_aside_limits,
            demand_source=demand_source,
            driver_commits=target.capabilities().commits_on is CommitsOn.DRIVER,
            factory=target.factory(),
        )

    def writers(self, record: ProgressRecord) -> tuple[WriterId, ...]:
        """Return the writers that can have rows in an epoch, in the order of Spark's tasks."""
        if self.single:
            return (SINGLE_WRITER,)
        return tuple(partition_writer(p) for p in sorted(record.to) if record.to[p] > record.from_[p])

    def plan(self, record: ProgressRecord, account: Account) -> EpochPlan:
        """Return what each task of an epoch is told."""
        return EpochPlan(
            sink=self.sink,
            record=account.writers_record(record),
            single_writer=SINGLE_WRITER if self.single else None,
            source_topic=self.source_topic,
            known={partition: account.positions.get(partition, 0) for partition in record.to},
            totals=dict(account.totals),
            holders=dict(account.holders),
            expected=self.writers(record),
            has_dead_letters=self.has_dead_letters,
            dead_letter_example=self.dead_letter_example,
            step_rows=STEP_ROWS,
            step_seconds=STEP_SECONDS,
            step_bytes=STEP_BYTES,
            newest=account.newest if self.driver_commits else None,
            demand_source=self.demand_source,
            limits=self.limits,
            factory=self.factory,
        )
