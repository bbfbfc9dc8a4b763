"""Carries out a reset or a rewind, in the order of a start: look, fence, read, decide, act, announce.

Why nothing of the old run is lost or counted twice:

- The plan that counts is made behind the fence, from what was read behind it: nothing follows any more.
- If the records moved between the look and the fence, a driver is alive. Nothing was written then, and its
  next start goes on as if nothing had happened.
- The first record that is written is the announcement, by the producer that fenced the driver's id.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from airflow_provider_sinks.connectors.kafka.announcer import Announcer
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.outputs import Outputs, offsets_at
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressReader
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.kafka.topic_facts import as_emptiable
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.connectors.kafka.transactional_ids import IdsToFence, ids_to_fence
from airflow_provider_sinks.connectors.kafka.transactions import fence, fence_dead, transactional_id
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset, Situation, announcement
from airflow_provider_sinks.core.lifecycle.steps import (
    Announce,
    Create,
    DeleteOutput,
    EmptyOutput,
    Fence,
    Plan,
    Step,
)
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, past_epochs
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import summary

READ_SECONDS = 30.0
KEEP_ALL = Reset()
_ROUNDS_MAX = 3
QUIET_SECONDS = 8.0
"""A driver whose task was ended commits for at most the five seconds that Airflow gives it."""
_QUIET_WAIT_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 1.0


class Generations:
    """The records and topics of one sink, in the hands of a reset or rewind. Use it as a context manager.

    :param spec: the sink.
    :param connections: what its connection ids stand for.
    :param owner: this Airflow.
    :param witness: what it remembers.
    :param read_seconds: how long reading the progress topic may take.
    :param quiet_seconds: how long nobody may have written before anything is changed.
    """

    def __init__(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        owner: str,
        witness: Witness | None,
        *,
        read_seconds: float = READ_SECONDS,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._spec = kafka_sink(spec)
        self._connections = connections
        self._owner = owner
        self._witness = witness
        self._read_seconds = read_seconds
        self._quiet_seconds = quiet_seconds
        self._options = connections.kafka(self._spec.target.kafka.connection)
        self._observer = SinkObserver(spec, connections, read_seconds)
        self._topics = KafkaClient(self._options)
        self._outputs = Outputs(self._options, self._topics)

    def look(self, ask: Reset = KEEP_ALL) -> Situation:
        """Return what there is, without touching anything.

        :param ask: what shall become of the outputs; more is looked at for some answers.
        :raises UnavailableError: a cluster did not answer.
        """
        observation = self._observer.observe()
        settings: dict[Role, dict[str, str]] = {}
        for role in (Role.DATA, Role.DEAD_LETTER):
            facts = observation.resources().get(role)
            if facts is None or facts.existence is not Existence.PRESENT:
                continue
            if ask.of(role) is Output.EMPTY:
                seen = self._topics.observe_topics([facts.name], policy_of=[facts.name])[facts.name]
                seen = as_emptiable(role, seen)
                if role is Role.DATA:
                    observation = replace(observation, data=seen)
                else:
                    observation = replace(observation, dead_letter=seen)
            elif ask.of(role) is Output.RECREATE:
                settings[role] = self._outputs.settings(facts.name)
        return Situation(self._spec, observation, self._owner, self._witness, settings)

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """Return the offset of the first record of each source partition that is not older than a time.

        :param time_ms: milliseconds since 1970; a partition without such a record is left out.
        """
        source = self._spec.source.kafka
        with KafkaConnection(self._connections.kafka(source.connection)) as connection:
            facts = self._observer.source.describe_topics([source.topic])[source.topic]
            return dict(offsets_at(connection, source.topic, facts.partitions, time_ms))

    def past_epochs(self) -> tuple[PastEpoch, ...]:
        """Return the epochs whose begin the progress topic still tells.

        :raises UnavailableError: the topic could not be read to its end.
        """
        topic = self._spec.progress_topic
        facts = self._topics.observe_topics([topic])[topic]
        if facts.existence is Existence.MISSING:
            return ()
        deadline = time.monotonic() + self._read_seconds
        with ProgressReader(self._options, topic, facts.low.get(0, 0)) as reader:
            return past_epochs(reader.up_to(facts.high.get(0, 0), deadline), self._spec.name)

    def carry_out(
        self, decide: Callable[[Situation], Plan], say: Callable[[str], None], ask: Reset = KEEP_ALL
    ) -> Plan:
        """Do what a decision comes to, and return its plan.

        :param decide: makes the plan; asked once before the fence and once behind it, where it counts.
        :param say: hears of each step when it is done.
        :param ask: as for :meth:`look`.
        :raises RefusedError: a driver was at work meanwhile; nothing was written.
        :raises SinkError: as the decision says, or because a step did not work out.
        """
        looked = self._quiet_look(ask)
        if not (plan := decide(looked)).steps:
            return plan
        with Announcer(self._options, self._spec) as announcer:
            situation, fenced = self._behind_the_fence(looked, ask)
            _demand_quiet(looked.history, situation.history, self._spec.name)
            plan = decide(situation)
            for step in plan.steps:
                self._do(step, announcer, fenced)
                say(str(step))
        return plan

    def act(self, step: Fence | DeleteOutput) -> None:
        """Carry out one step of a drop."""
        if isinstance(step, Fence):
            self._fence(self._ids(self.look()))
        else:
            self._outputs.delete(step)

    def close(self) -> None:
        """Drop the clients."""
        self._outputs.close()
        self._topics.close()
        self._observer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _quiet_look(self, ask: Reset) -> Situation:
        """Look when nobody has written for some seconds: a driver that is being ended may commit once more.

        :raises RefusedError: somebody goes on writing.
        """
        deadline = time.monotonic() + _QUIET_WAIT_SECONDS
        while _age_seconds((looked := self.look(ask)).history) < self._quiet_seconds:
            if time.monotonic() > deadline:
                raise _at_work(self._spec.name, f"Its newest progress is {summary(looked.history)}")
            time.sleep(_LOOK_AGAIN_SECONDS)
        return looked

    def _behind_the_fence(self, looked: Situation, ask: Reset) -> tuple[Situation, IdsToFence]:
        """Fence every id, and look again until the records name no other."""
        situation, fenced = looked, {self._own_driver()}
        for _ in range(_ROUNDS_MAX):
            ids = self._ids(situation)
            if situation is not looked and not ids.all - fenced:
                return situation, ids
            self._fence(ids, fenced)
            fenced |= ids.all
            situation = self.look(ask)
        raise UnavailableError(
            f'sink "{self._spec.name}" is being started somewhere else',
            "New writers were announced while they were being fenced.",
            "Find out who else starts it, and try again.",
        )

    def _ids(self, situation: Situation) -> IdsToFence:
        """Return the transactional ids of all writers, and those that records name."""
        spec = self._spec
        return ids_to_fence(spec.transactional_id_prefix, spec.name, situation.writers, situation.history)

    def _own_driver(self) -> str:
        return transactional_id(self._spec.transactional_id_prefix, self._spec.name, DRIVER)

    def _fence(self, ids: IdsToFence, fenced: Collection[str] = ()) -> None:
        timeout = self._spec.transaction_timeout
        fence(self._options, sorted(ids.alive.difference(fenced)), timeout)
        fence_dead(self._options, sorted(ids.dead.difference(fenced)), timeout)

    def _do(self, step: Step, announcer: Announcer, fenced: IdsToFence) -> None:
        """Carry out one step; the fence stands already."""
        match step:
            case Fence():
                pass  # it stands already: what is planned behind it is planned from what was read behind it
            case Create():
                self._observer.connector.ensure(step.creation)
            case EmptyOutput():
                self._outputs.empty(step)
            case DeleteOutput():
                self._outputs.delete(step)
            case Announce():
                announcer.commit(announcement(self.look(), step, str(uuid.uuid4()), fenced.all))
            case _:
                raise AssertionError(f"nobody here can do this: {step}")


def _demand_quiet(before: History, after: History, sink: str) -> None:
    """Stop when a driver wrote between the look and the fence."""
    if _newest(before) != _newest(after):
        raise _at_work(sink, f"Its progress moved from {summary(before)} to {summary(after)} meanwhile")


def _at_work(sink: str, seen: str) -> RefusedError:
    return RefusedError(
        f'a driver of sink "{sink}" is at work',
        f"{seen}. Nothing was written; that driver may have to start again.",
        f"Stop the sink first: airflow sinks pause {sink}",
    )


def _newest(history: History) -> tuple[object, ...]:
    in_force = history.in_force
    return history.generation, history.epoch, in_force.run if in_force else ""


def _age_seconds(history: History) -> float:
    """Return how long ago a driver wrote, by two clocks that may differ; long, if none did."""
    written = [datetime.fromisoformat(record.at) for record in history.current.values() if record.at]
    if not written or not history.checkpoint:
        return math.inf
    return abs((datetime.now(UTC) - max(written)).total_seconds())
