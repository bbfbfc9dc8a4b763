"""The start of a run, in this order and no other; all of it at every start.

1. **Look** (advice): decide once without touching anything, so that a start that will be refused does not
   stop the sink's rightful driver.
2. **Fence** the driver's id, every writer id the spec names, and every id that the records name, under
   whatever prefix: from here on no other holder can commit.
3. **Read** the progress, only now: what was committed before the fence is in it, and nothing follows.
   If records name more ids, fence those and read again.
4. **Observe** the topics. 5. **Decide**, and this time it counts.
6. **Ensure** the progress topic, then data and dead-letter topic.
7. **Announce**: the driver commits its record with the new run. Writers of an older run that open after this
   see it and stop; writers that opened before are fenced.
8. **Resume** at the positions that the records prove, with the checkpoint that fits them.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.kafka.connector import DriverRecords, KafkaTopics, KafkaWriterFactory
from airflow_provider_sinks.connectors.kafka.observer import SinkObserver
from airflow_provider_sinks.connectors.kafka.transactions import fence, fence_dead
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.report import render
from airflow_provider_sinks.core.decision.start_request import wanted
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.launch.files import Launch
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.core.progress.source_range import start_positions
from airflow_provider_sinks.core.progress.transactional_ids import IdsToFence, ids_to_fence, transactional_id
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.source import CheckpointLog

_ROUNDS_MAX = 3


@dataclass(frozen=True)
class Started:
    """What a start has established.

    :param run: the uuid of this run.
    :param checkpoint: the folder for Spark's checkpoint.
    :param account: what is committed.
    :param identities: the topics as announced.
    :param factory: makes writers on executors.
    """

    run: str
    generation: int
    checkpoint: str
    account: Account
    identities: Identities
    factory: KafkaWriterFactory


class Start:
    """One start of a sink, and what the run keeps of it: the observer, and the driver's own writer.

    :param spec: the sink.
    :param launch: what Airflow said: owner, witness, accept code.
    :param connections: the resolved connections.
    :param held_up: told what the start waits for, such as somebody's open transaction.
    """

    def __init__(
        self,
        spark: SparkSession,
        spec: SinkSpec,
        launch: Launch,
        connections: ResolvedConnections,
        held_up: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._spec = spec
        self._launch = launch
        self._run = str(uuid.uuid4())
        self._options = connections.kafka(spec.target.kafka.connection)
        self._observer = SinkObserver(spec, connections, held_up=held_up)
        witness = Witness.from_mapping(launch.witness) if launch.witness else None
        self._wanted = wanted(spec, launch.owner, witness)
        self._fenced: set[str] = set()
        self._records: DriverRecords | None = None

    def run(self) -> Started:
        """Go through all eight steps.

        :raises RefusedError: with every way on.
        :raises UnavailableError: when something could not be seen.
        """
        looked = self._look()
        self._records = DriverRecords(self._factory(generation=0))
        self._fenced.add(self._id(DRIVER))
        self._fence(self._ids(looked))
        observation = self._read_behind_the_fence()
        verdict = self._decide(observation, looked.history)
        observation = self._ensure(verdict, observation)
        return self._announce_run(verdict, observation)

    def look(self) -> dict[Role, ResourceFacts]:
        """Return which topics the sink's topics are right now."""
        return self._observer.identify()

    def decide_on(self, observation: Observation, witness: Witness | None) -> Verdict:
        """Decide on what is there now, after a topic changed under the sink.

        :param witness: what Airflow will know of this run when it is over, so that an accept code which is
            printed now fits the next start.
        """
        return decide(observation, replace(self._wanted, witness=witness or self._wanted.witness))

    def abort_open_transactions(self, writers: Iterable[WriterId]) -> None:
        """Fence this run's own writers, once nothing of it may be committed any more.

        Without it the progress could be read only after their transaction timeout: a flush to a topic that is
        gone hangs, with the progress record behind it.
        """
        ids = [self._id(writer) for writer in sorted({*writers} - {DRIVER})]
        with contextlib.suppress(UnavailableError):  # then the timeout aborts them
            fence(self._options, ids, self._spec.transaction_timeout)

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer start has announced itself."""
        if self._records is not None:
            self._records.demand_in_force()

    def source_end_offsets(self) -> Mapping[int, int]:
        """Return the offset after the last record of each source partition."""
        topic = self._wanted.source
        return self._observer.source.observe_topics([topic])[topic].high

    def announce(self, record: ProgressRecord) -> None:
        """Commit a record of the driver, with every id that was fenced and those about to be used."""
        assert self._records is not None  # noqa: S101  nobody announces before the run is
        ids = self._fenced.union(map(self._id, record.writers))
        self._records.commit(replace(record, ids=tuple(sorted(ids))))

    def close(self) -> None:
        """Drop all clients."""
        self._observer.close()
        if self._records is not None:
            self._records.close()

    def _look(self) -> Observation:
        """Decide once without touching anything."""
        observation = self.observe()
        _demand(decide(observation, self._wanted, self._launch.accept))
        return observation

    def observe(self) -> Observation:
        """Return what is there, with what Spark's checkpoint says where records name one.

        A driver that still runs may commit between the two readings. An epoch is recorded before Spark's
        checkpoint calls it committed: records that are read behind the checkpoint are never older than it.
        """
        observation = self._observer.observe()
        history = observation.history
        if history is None or not (folder := history.checkpoint):
            return observation
        checkpoint = self._checkpoint(folder)
        if checkpoint.committed > history.batch(folder):
            observation = self._observer.observe()
        return replace(observation, checkpoint=checkpoint)

    def _checkpoint(self, folder: str) -> CheckpointFacts:
        log = CheckpointLog(self._spark, folder, self._spec.source.kafka.topic)
        committed, planned = log.newest("commits"), log.newest("offsets")
        return CheckpointFacts(
            folder, -1 if committed is None else committed, -1 if planned is None else planned
        )

    def _id(self, writer: WriterId) -> str:
        return transactional_id(self._spec.transactional_id_prefix, self._spec.name, writer)

    def _ids(self, observation: Observation) -> IdsToFence:
        """Return every id of the coming run, and every one that the records name."""
        spec, writers = self._spec, self._spec_writers(observation.source.partitions)
        return ids_to_fence(spec.transactional_id_prefix, spec.name, (DRIVER, *writers), observation.known)

    def _fence(self, ids: IdsToFence) -> None:
        timeout = self._spec.transaction_timeout
        fence(self._options, sorted(ids.alive - self._fenced), timeout)
        for name in fence_dead(self._options, sorted(ids.dead - self._fenced), timeout):
            say(f'transactional id "{name}" may not be fenced any more; nobody can hold it either')
        self._fenced |= ids.all

    def _read_behind_the_fence(self) -> Observation:
        """Observe until the records name no id that is not fenced yet.

        :raises UnavailableError: when somebody goes on naming new ones.
        """
        for _ in range(_ROUNDS_MAX):
            observation = self.observe()
            ids = self._ids(observation)
            unfenced = ids.all - self._fenced
            if not unfenced:
                return observation
            self._fence(ids)
        raise UnavailableError(
            f'sink "{self._spec.name}" is being started somewhere else',
            f"New writers were announced while this start was fencing: {sorted(unfenced)}.",
            "Find out who else starts it; the next try looks again.",
        )

    def _decide(self, observation: Observation, looked: History | None) -> Verdict:
        """Decide, and this time it counts."""
        seen_before = looked.generation if looked is not None else None
        verdict = decide(observation, replace(self._wanted, generation=seen_before), self._launch.accept)
        say(render(observation, verdict))
        return _demand(verdict)

    def _ensure(self, verdict: Verdict, observation: Observation) -> Observation:
        """Make the topics that are missing, and look at all of them again."""
        if not verdict.actions:
            return observation
        for action in verdict.actions:
            say(str(action))
            self._observer.target.ensure_topic(action)
        return self.observe()

    def _announce_run(self, verdict: Verdict, observation: Observation) -> Started:
        history = (observation.history or NO_HISTORY) if verdict.generation else NO_HISTORY
        resumes = bool(history) and history.generation == verdict.generation
        checkpoint = history.checkpoint if verdict.continues_checkpoint else self._new_checkpoint(verdict)
        positions = self._positions(verdict, observation.source)
        writers = {
            DRIVER,
            *observation.known.writers_ever,
            *self._spec_writers(observation.source.partitions),
        }
        assert self._records is not None  # noqa: S101  the fence made it
        factory = replace(self._factory(verdict.generation), holder=self._records.holder)
        self._records.run_as(factory)
        record = ProgressRecord(
            generation=verdict.generation,
            owner=self._launch.owner,
            run=self._run,
            epoch=verdict.epoch,
            from_=positions,
            to=positions,
            identities=observation.identities(),
            checkpoint=checkpoint,
            batch=history.batch(checkpoint) if resumes else -1,
            spec_digest=self._spec.digest,
            writers=tuple(sorted(writers)),
            writer_mode=self._spec.writer_mode.value,
            spec=self._spec.to_json(),
            totals={w: t for w, t in history.totals().items() if w != DRIVER} if resumes else {},
            rows_before=verdict.rows_before,
            dead_before=verdict.dead_before,
        )
        self.announce(record)
        newest = self._newest(history, record) if resumes else record
        account = Account(newest, dict(positions), dict(record.totals), set(writers))
        return Started(self._run, verdict.generation, checkpoint, account, record.identities, factory)

    def _newest(self, history: History, announced: ProgressRecord) -> ProgressRecord:
        """Return the announced record with the range of the newest epoch, to tell a replay of it."""
        newest = history.newest
        if newest is None:
            return announced
        return replace(
            announced, from_=newest.from_, to=newest.to, checkpoint=newest.checkpoint, batch=newest.batch
        )

    def _positions(self, verdict: Verdict, source: ResourceFacts) -> dict[int, int]:
        """Return an offset for every source partition; names such as ``earliest`` are resolved here, once."""
        if verdict.positions is not None:
            return {p: source.low[p] if at == EARLIEST else at for p, at in verdict.positions.items()}
        return start_positions(self._spec.source.kafka.start, source)

    def _spec_writers(self, source_partitions: int) -> tuple[WriterId, ...]:
        if self._spec.writer_mode is Writers.SINGLE:
            return (SINGLE_WRITER,)
        return tuple(partition_writer(partition) for partition in range(source_partitions))

    def _new_checkpoint(self, verdict: Verdict) -> str:
        """Return a folder of its own for this run: Spark ignores start offsets where a checkpoint exists."""
        return f"{self._launch.checkpoint_root}/{self._spec.name}/{verdict.generation}-{self._run}"

    def _factory(self, generation: int) -> KafkaWriterFactory:
        spec = self._spec
        return KafkaWriterFactory(
            sink=spec.name,
            run=self._run,
            generation=generation,
            prefix=spec.transactional_id_prefix,
            topics=KafkaTopics(
                data=spec.target.kafka.topic,
                progress=spec.progress_topic,
                dead_letter=spec.dead_letter.topic if spec.dead_letter else None,
                source=spec.source.kafka.topic,
            ),
            transaction_timeout=spec.transaction_timeout,
            compression=spec.target.kafka.compression.value,
            options=self._options.with_files_read(),
        )


def _demand(verdict: Verdict) -> Verdict:
    error = verdict.error()
    if error is not None:
        raise error
    return verdict
