"""The start of a run, in this order and no other; all of it at every start.

1. **Look** (advice): decide once without touching anything, so that a start that will be refused does not
   stop the sink's rightful driver. It may wait for long; a start that is not wanted any more ends behind it,
   and so does one whose executors cannot write (:mod:`.warm_up`).
2. **Open** the target: it fences every older run and every writer of it. 3. **Read** the progress, only now.
   4. **Observe** the resources. Why nothing can follow what is read stands in :mod:`.connectors.fencing`.
5. **Decide**, and this time it counts.
6. **Ensure** the progress place, then the outputs; what was there must still be what was decided on.
7. **Announce**: the driver commits its record with the new run. Where the verdict alters the data output,
   that happens here: in the same transaction, or right before.
8. **Resume** at the positions that the records prove, with the checkpoint that fits them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.fencing import Fencing
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.announcement import Beginning, announcement
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.start_request import start_request
from airflow_provider_sinks.core.decision.verdict import Verdict, render
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.launch.files import Launch
from airflow_provider_sinks.core.lifecycle.replay import demand_announced
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord
from airflow_provider_sinks.core.progress.source_range import start_positions
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.source import CheckpointLog
from airflow_provider_sinks.streaming.source_identity import demand_undisturbed
from airflow_provider_sinks.streaming.source_log import SourceLog


@dataclass(frozen=True)
class Started:
    """What a start has established.

    :param run: the uuid of this run.
    :param checkpoint: the folder for Spark's checkpoint.
    :param account: what is committed.
    :param identities: the topics as announced.
    :param source_log: the log of the source, as it was seen when the start decided.
    """

    run: str
    generation: int
    checkpoint: str
    account: Account
    identities: Identities
    source_log: SourceLog


class Start:
    """One start of a sink, and what the run keeps of it: the observer, and the target.

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
        self._observer = SinkObserver(spec, connections, held_up=held_up, say=say)
        self._fencing = Fencing(spec, self._observer.connector, self.observe)
        witness = Witness.from_mapping(launch.witness) if launch.witness else None
        self._request = start_request(spec, launch.owner, witness)

    def expect(self, output: DataFrame) -> None:
        """Compare the query's columns with the target's, before anybody is fenced.

        :raises ConfigurationError: they do not fit, and the start may not make them fit.
        """
        self.connector.expect(output)
        self._observer.expect(output.schema.jsonValue())

    def advise(self) -> Observation:
        """Take the first step: decide once without touching anything.

        :raises RefusedError: with every way on.
        :raises UnavailableError: when something could not be seen.
        """
        observation = self.observe()
        self._demand_replay_in_force(observation)
        decide(observation, self._request, self._launch.accept).demand_start()
        return observation

    def run(self, looked: Observation) -> Started:
        """Go through the other seven steps.

        :param looked: what :meth:`advise` saw.
        :raises SinkError: as there.
        """
        observation = self._fencing.read_behind(looked)
        verdict = self._decide(observation, looked.history)
        observation = self._ensure(verdict, observation)
        started = self._announce_run(verdict, observation)
        self._observer.expect(None)  # the columns of a run are the guard's from here on
        return started

    @property
    def connector(self) -> SinkConnector:
        """The target of the sink."""
        return self._observer.connector

    def look(self) -> Mapping[Role, ResourceFacts]:
        """Return which resources the sink's resources are right now."""
        return self._observer.identify()

    def decide_on(self, observation: Observation, witness: Witness | None) -> Verdict:
        """Decide on what is there now, after a topic changed under the sink.

        :param witness: what Airflow will know of this run when it is over, so that an accept code which is
            printed now fits the next start.
        """
        return decide(observation, replace(self._request, witness=witness or self._request.witness))

    def source_end_offsets(self) -> Mapping[int, int]:
        """Return the offset after the last record of each source partition."""
        return self._observer.source_end_offsets()

    def records_waiting(self, positions: Mapping[int, int]) -> int | None:
        """Return how many records of the source lie behind these positions; ``None`` where one cannot see it.

        Nothing hangs on it, so what goes wrong is said and ends no driver.
        """
        try:
            ends = self.source_end_offsets()
        except SinkError as error:
            say(f"how many records of the source wait is not known: {error}")
            return None
        return sum(end - positions.get(partition, 0) for partition, end in ends.items())

    def source_record_bytes(self) -> float | None:
        """Return what a record of the source weighs, in bytes; ``None`` where that cannot be seen.

        It bounds an epoch and nothing hangs on it, so what goes wrong is said and ends no driver.
        """
        try:
            return self._observer.source_record_bytes()
        except SinkError as error:
            say(f"what records of the source weigh is not known: {error}")
            return None

    def close(self) -> None:
        """Drop all clients."""
        self._observer.close()

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
        log = CheckpointLog(self._spark, folder, self._spec.source_topic)
        committed, planned = log.newest("commits"), log.newest("offsets")
        return CheckpointFacts(
            folder, -1 if committed is None else committed, -1 if planned is None else planned
        )

    def _decide(self, observation: Observation, looked: History | None) -> Verdict:
        """Decide, and this time it counts."""
        self._demand_replay_in_force(observation)
        seen_before = looked.generation if looked is not None else None
        verdict = decide(observation, replace(self._request, generation=seen_before), self._launch.accept)
        say(render(observation, verdict))
        return verdict.demand_start()

    def _demand_replay_in_force(self, observation: Observation) -> None:
        """Refuse a launch of a replay unless the records say that it is this one."""
        in_force = observation.known.in_force
        demand_announced(self._spec, in_force.spec if in_force else "")

    def _ensure(self, verdict: Verdict, observation: Observation) -> Observation:
        """Make the topics that are missing, and look at all of them again.

        :raises UnavailableError: one that was there is another one by now, which nobody has decided on.
        """
        if not verdict.actions:
            return observation
        for action in verdict.actions:
            say(str(action))
            self.connector.ensure(action)
        now = self.observe()
        demand_undisturbed(observation, now, {action.role for action in verdict.actions})
        is_as_it_was = now.source.identity == observation.source.identity
        return replace(now, source=observation.source) if is_as_it_was else now  # its log was judged

    def _announce_run(self, verdict: Verdict, observation: Observation) -> Started:
        beginning = self._beginning(verdict, observation)
        run = self._fencing.run.id
        record = announcement(self._spec, self._launch.owner, run, observation, beginning)
        self._fencing.announce(record, verdict.migration)
        for told in verdict.migration.told() if verdict.migration is not None else ():
            say(f"done: {told}")
        self.connector.sweep()
        newest = self._newest(_resumed(verdict, observation), record)
        written = {**beginning.totals, DRIVER: beginning.own}
        account = Account(newest, dict(record.to), written, set(record.writers), announced=beginning.totals)
        log = SourceLog(self._observer.source, self._spec.source_topic, observation.source.ends)
        return Started(run, record.generation, record.checkpoint, account, record.identities, log)

    def _beginning(self, verdict: Verdict, observation: Observation) -> Beginning:
        resumed, known = _resumed(verdict, observation), observation.known
        checkpoint = known.checkpoint if verdict.continues_checkpoint else self._new_checkpoint(verdict)
        totals = resumed.totals()
        own = totals.pop(DRIVER, (0, 0))
        return Beginning(
            verdict.generation,
            self._positions(verdict, observation.source),
            epoch=verdict.epoch,
            checkpoint=checkpoint,
            batch=resumed.batch(checkpoint),
            own=own,
            totals=totals,
            rows_before=verdict.rows_before,
            dead_before=verdict.dead_before,
        )

    def _newest(self, history: History, announced: ProgressRecord) -> ProgressRecord:
        """Return the announced record with the range of the newest epoch, to tell a replay of it.

        Spark replays it from its own checkpoint alone: behind a new one nothing may name the old one again.
        """
        newest = history.newest
        if newest is None or newest.checkpoint != announced.checkpoint:
            return announced
        return replace(announced, from_=newest.from_, to=newest.to, batch=newest.batch)

    def _positions(self, verdict: Verdict, source: ResourceFacts) -> dict[int, int]:
        """Return an offset for every source partition; names such as ``earliest`` are resolved here, once."""
        if verdict.positions is not None:
            return {p: source.low[p] if at == EARLIEST else at for p, at in verdict.positions.items()}
        return start_positions(self._spec.source.kafka.start, source)

    def _new_checkpoint(self, verdict: Verdict) -> str:
        """Return a folder of its own for this run: Spark ignores start offsets where a checkpoint exists."""
        return f"{self._launch.checkpoint_root}/{self._spec.name}/{verdict.generation}-{self._fencing.run.id}"


def _resumed(verdict: Verdict, observation: Observation) -> History:
    """Return what is known of the generation that goes on; nothing where a new one begins."""
    known = observation.known
    return known if known.generation == verdict.generation else NO_HISTORY
