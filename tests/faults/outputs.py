"""What a sink under test writes to, as somebody reads it who knows nothing of sinks, for each target."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_sinks.connectors.delta.spec import DeltaSink
from airflow_provider_sinks.connectors.iceberg.spec import IcebergSink
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.postgres.spec import PostgresSink
from tests.faults.driver import SinkUnderTest
from tests.faults.feed import Feed
from tests.faults.lake_output import LakeOutput
from tests.faults.lake_tables import DeltaReader, IcebergReader
from tests.faults.outcome import Outcome
from tests.faults.parts import Part
from tests.faults.table_output import TableOutput
from tests.faults.topic_output import TopicOutput
from tests.faults.world import World


class Output(Protocol):
    """What a sink writes to. It is watched from its making to its closing."""

    def make(self) -> None:
        """Make it, and begin to watch."""

    def close(self) -> None:
        """Stop watching."""

    def has_open_transaction(self) -> bool:
        """Whether somebody has written what is not committed yet."""

    def left_behind(self) -> int:
        """Return how much was written so far that nobody will see: kills did hit open transactions."""

    def kill(self, part: Part) -> bool:
        """SIGKILL a part of the server behind it, if one is at work now; say whether one was."""

    def examine(self, feed: Feed) -> Outcome:
        """Read everything, and judge it against its source."""


def output_of(world: World, sink: SinkUnderTest) -> Output:
    """Return what a sink writes to."""
    match sink.parsed:
        case KafkaSink() as spec:
            return TopicOutput(world, spec)
        case PostgresSink() as spec:
            return TableOutput(world.postgres, spec.target.postgres)
        case IcebergSink() as spec:
            iceberg = spec.target.iceberg
            return LakeOutput(sink, IcebergReader(world.lake, spec.name, iceberg), iceberg.mode)
        case DeltaSink() as spec:
            return LakeOutput(sink, DeltaReader(spec.name, spec.target.delta), spec.target.delta.mode)
        case other:
            raise AssertionError(f"nobody here reads what {type(other).__name__} writes")
