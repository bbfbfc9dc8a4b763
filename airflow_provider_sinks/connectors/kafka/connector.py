"""The Kafka target of one sink: a transaction per writer and epoch, with the progress record last in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.base import (
    Capabilities,
    CommitsOn,
    Health,
    HeldUp,
    MetricValue,
    Run,
    Say,
)
from airflow_provider_sinks.connectors.kafka import row_path
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.driver_records import DriverRecords
from airflow_provider_sinks.connectors.kafka.observer import KafkaObserver
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.outputs import Outputs
from airflow_provider_sinks.connectors.kafka.run import KafkaRun, KafkaTopics
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.kafka.surely_taken import KnownLimits
from airflow_provider_sinks.connectors.kafka.topic_facts import as_emptiable
from airflow_provider_sinks.connectors.kafka.transactional_ids import (
    IdsToFence,
    ids_to_fence,
    transactional_id,
)
from airflow_provider_sinks.connectors.kafka.transactions import fence, fence_dead
from airflow_provider_sinks.connectors.kafka.written_schemas import TargetSchemas, WrittenBy
from airflow_provider_sinks.connectors.laid_columns import KeptColumns
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.connectors.rows import RecordColumns
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError, SinkError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory

_KEPT_WRITERS = 64
"""A producer that has nothing to do takes half a megabyte, a thread for each broker and three more."""


class KafkaConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what, and when.

    :param spec: the sink.
    :param connections: what its connection ids stand for.
    :param read_seconds: how long reading the progress topic may take; ``None`` is long enough to outlive a
        transaction that somebody abandoned.
    :param held_up: told what a reading waits for.
    :param say: told what a person should know.
    """

    def __init__(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> None:
        self._spec = spec = kafka_sink(spec)
        self._say = say
        self._options = connections.get(spec.target.kafka.connection, KafkaOptions)
        self._observer = KafkaObserver(spec, self._options, read_seconds, held_up)
        self._fenced: set[str] = set()
        self._run: KafkaRun | None = None
        self._records: DriverRecords | None = None
        self._limits = KnownLimits(has_time=spec.target.kafka.has_time)
        self._connections = connections
        self._schemas: TargetSchemas | None = None
        self._written: Mapping[Part, WrittenBy] | None = None
        self._kept = KeptColumns()

    def capabilities(self) -> Capabilities:
        """Return that each writer commits by itself, without anything left over that could be committed."""
        return Capabilities(CommitsOn.EXECUTOR, kept_writers=_KEPT_WRITERS)

    def suggested_timeout(self) -> timedelta:
        """Return after what time the broker aborts a transaction."""
        return self._spec.transaction_timeout

    @property
    def service(self) -> str:
        """Which brokers these are, for a sentence."""
        return f"Kafka at {self._options.bootstrap_servers}"

    def project(self, output: DataFrame) -> DataFrame:
        """Return keys and values as bytes, as the target's key and format say."""
        from airflow_provider_sinks.connectors.kafka.encoding import encode

        if self._written is None and self._spec.target.kafka.registered_parts:
            raise JobFailedError("rows are to be written by schemas that no start has registered")
        aside = self._spec.dead_letter is not None
        taken = self._limits.surely_taken(self._writer_factory) if aside else None
        return self._kept.over(
            output, lambda: encode(output, self._spec, taken, self._written), taken, self._written
        )

    def record_columns(self) -> RecordColumns:
        """Return key and value."""
        return RecordColumns(KEY, VALUE)

    def expect(self, output: DataFrame) -> None:
        """Ask the registry what it would say about the schemas to be written; nothing is registered."""
        if (aware := self.as_schema_registry_aware()) is None:
            return
        plans = aware.plan(output.schema.jsonValue())
        refused = [plan.problem("target.kafka") for plan in plans if not plan.may_start]
        if refused:
            raise ConfigurationError(f'sink "{self._spec.name}" may not write like this', refused)

    def as_schema_registry_aware(self) -> TargetSchemas | None:
        """Return what speaks to the target's registry; the client library is loaded now."""
        target = self._spec.target.kafka
        if self._schemas is None and target.registry is not None and target.registered_parts:
            options = self._connections.get(target.registry, RegistryOptions)
            self._schemas = TargetSchemas(self._spec, SchemaRegistry(options))
        return self._schemas

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the topics and read the progress."""
        return self._observer.observe(source)

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Describe the topics."""
        return self._observer.identify()

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Take the driver's id first, then every id of the coming run, and every one that the records name.

        Under each prefix the driver's id is taken before a writer's, so that a writer which opens behind its
        fence sees that the id of its driver has another holder (:mod:`.in_force`).
        """
        if self._records is None:
            self._take_driver(run)
        spec = self._spec
        named = (DRIVER, *writers)
        ids = ids_to_fence(spec.transactional_id_prefix, spec.name, named, looked.known)
        if ids.all <= self._fenced:
            return True
        for group in ids.in_order():
            self._fence(group)
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a topic, and wait until it is visible."""
        if not isinstance(creation, CreateTopic):
            raise JobFailedError(f"{creation} is not for Kafka")
        self._observer.client.ensure_topic(creation)

    def announce(self, record: ProgressRecord) -> None:
        """Commit a record of the driver, with every id that was fenced and those about to be used.

        Schemas are registered before the first one: behind the fence, while a failure still changes nothing.
        A start that another one has overtaken by then registers nothing; one that is overtaken while it asks
        the registry may leave a version that nobody writes by, and its record does not commit.
        """
        assert self._records is not None  # noqa: S101  nobody announces before the fence
        if self._schemas is not None and self._written is None:
            self._records.demand_held()
            self._written = self._schemas.register()
        if record.generation != self._live_run.generation:
            self._run = replace(self._live_run, generation=record.generation, holder=self._records.holder)
            self._records.run_as(self._run)
        ids = self._fenced.union(map(self._id, record.writers))
        self._records.commit(replace(record, ids=tuple(sorted(ids))))

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer start has announced itself."""
        if self._records is not None:
            self._records.demand_in_force()

    def factory(self) -> KafkaWriterFactory:
        """Return what makes writers under the announced run."""
        if why := row_path.told(self._spec.target.kafka):
            self._say(why)
        return self._writer_factory

    def progress(self) -> History:
        """Read the progress topic to its end."""
        return self._observer.read_progress()

    def end_open(self, writers: Iterable[WriterId]) -> None:
        """Fence this run's own writers.

        Without it the progress could be read only after their transaction timeout: a flush to a topic that is
        gone hangs, with the progress record behind it.
        """
        ids = [self._id(writer) for writer in sorted({*writers} - {DRIVER})]
        with contextlib.suppress(SinkError):  # then the timeout aborts them
            fence(self._options, ids, self._spec.transaction_timeout)

    def look_closely(self, role: Role, output: ResourceFacts) -> ResourceFacts:
        """Return a topic with its cleanup policy: records of a compacted one cannot be deleted."""
        seen = self._observer.client.observe_topics([output.name], policy_of=[output.name])
        return as_emptiable(role, seen[output.name])

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return what somebody has set for a topic."""
        with Outputs(self._options, self._observer.client) as outputs:
            return outputs.settings(output.name)

    def past_epochs(self) -> Iterable[PastEpoch]:
        """Read the whole progress topic."""
        return self._observer.past_epochs()

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Delete the records of a topic, or the topic itself.

        Neither can be part of a transaction. So it is seen right before that nobody has taken over; a start
        that does so in the moment between finds the topic emptied, or gone, behind its fence.
        """
        assert self._records is not None  # noqa: S101  open comes first
        with Outputs(self._options, self._observer.client) as outputs:
            self._records.demand_may_reset()
            if isinstance(step, EmptyOutput):
                outputs.empty(step)
            else:
                outputs.delete(step)

    def health_check(self) -> Health:
        """Ask a broker for its cluster's id."""
        try:
            self._observer.client.cluster_id()
        except SinkError as error:
            return Health(False, error.primary)
        return Health(True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return how many transactional ids the run has."""
        return {"transactional_ids": len(self._fenced)}

    def close(self) -> None:
        """Drop all clients."""
        self._observer.close()
        if self._schemas is not None:
            self._schemas.close()
        if self._records is not None:
            self._records.close()

    @property
    def _writer_factory(self) -> KafkaWriterFactory:
        from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory

        target = self._spec.target.kafka
        return KafkaWriterFactory(self._live_run, target.compression.value, bool(target.compact_epoch))

    @property
    def _live_run(self) -> KafkaRun:
        assert self._run is not None  # noqa: S101  the fence made it
        return self._run

    def _take_driver(self, run: Run) -> None:
        """Take the driver's id; the generation of the run is not known before it is announced."""
        spec = self._spec
        self._run = KafkaRun(
            sink=spec.name,
            run=run.id,
            generation=0,
            prefix=spec.transactional_id_prefix,
            topics=KafkaTopics(
                data=spec.target.kafka.topic,
                progress=spec.progress_topic,
                dead_letter=spec.dead_letter.topic if spec.dead_letter else None,
                source=run.source,
            ),
            transaction_timeout=spec.transaction_timeout,
            options=self._options.with_files_read(),
            spec_digest=run.spec_digest,
            letters_of=run.letters_of,
            may_multiply=run.may_multiply,
        )
        self._records = DriverRecords(self._run)
        self._fenced.add(self._id(DRIVER))

    def _fence(self, ids: IdsToFence) -> None:
        timeout = self._spec.transaction_timeout
        if alive := sorted(ids.alive - self._fenced):
            fence(self._options, alive, timeout)
        for name in fence_dead(self._options, sorted(ids.dead - self._fenced), timeout):
            self._say(f'transactional id "{name}" may not be fenced any more; nobody can hold it either')
        self._fenced |= ids.all

    def _id(self, writer: WriterId) -> str:
        return transactional_id(self._spec.transactional_id_prefix, self._spec.name, writer)
