"""What a target answers that has nothing to say. A connector inherits it and writes what it does have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_provider_sinks.connectors.base import (
    MetricValue,
    SchemaEvolvable,
    SchemaRegistryAware,
    SinkConnector,
)
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, Token
from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.rows import RecordColumns


@dataclass(frozen=True)
class PlainCreation:
    """An action: this output, or progress place, must exist. Nothing more can be said of how."""

    role: Role
    name: str

    @property
    def hindrance(self) -> None:
        """Nothing: it can always be made."""
        return

    def for_source(self, source: ResourceFacts) -> Self:
        """Return it as it is: nothing of it hangs on the source."""
        del source
        return self

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> Self:
        """Return it as it is: nothing can be set for it."""
        del before, settings
        return self


class NoWriters:
    """Stands where other targets have what makes their writers: where the engine commits."""

    def prepare(self, writer: WriterId) -> EpochWriter:
        """Say that there is none."""
        raise JobFailedError(f"there is no writer {writer}: Spark's own writer writes the rows")


class PlainConnector:
    """The part of :class:`.base.SinkConnector` that most targets leave empty."""

    def expect(self, output: DataFrame) -> None:
        """Do nothing: it takes any columns."""

    def record_columns(self) -> RecordColumns | None:
        """Return none: rows are projected."""
        return None

    def schema(self) -> Mapping[str, str]:
        """Return nothing: every column is taken."""
        return {}

    def write_frame(self, rows: DataFrame, record: ProgressRecord) -> int:
        """Say that Spark's own writer has no part in it: executors or the driver commit."""
        del rows, record
        raise JobFailedError("this target is not written by Spark's own writer")

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Do nothing: each writer has committed."""

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Do nothing: what was not committed is gone by itself."""

    def end_open(self, writers: Iterable[WriterId]) -> None:
        """Do nothing: nobody waits for what a writer has open."""

    def sweep(self) -> None:
        """Do nothing: nothing is staged."""

    def look_closely(self, role: Role, output: ResourceFacts) -> ResourceFacts:
        """Return what was seen: any output can be emptied."""
        del role
        return output

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return nothing: nothing can be set that would be lost with the output."""
        del output
        return {}

    def past_epochs(self: SinkConnector) -> Iterable[PastEpoch]:
        """Return what the newest record of each writer tells; older ones are not kept."""
        return past_epochs(self.progress().records.items())

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return no figures."""
        return {}

    def as_schema_registry_aware(self) -> SchemaRegistryAware | None:
        """Return nothing: there is no registry."""
        return None

    def as_schema_evolvable(self) -> SchemaEvolvable | None:
        """Return nothing: columns are not added."""
        return None

    def close(self) -> None:
        """Do nothing: there is no client."""
