"""Looks at everything a decision needs: the source of a sink, and its target through its connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.registry import connect, source_of
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.evolution import NeedsMigration, demanded
from airflow_provider_sinks.core.spec.sink import SinkSpec


class SinkObserver:
    """An observer of one sink. Creates nothing. Use it as a context manager.

    :param spec: the sink.
    :param connections: what its connection ids stand for.
    :param read_seconds: how long reading the progress may take; ``None`` is as long as its target needs.
    :param held_up: told once when reading takes some seconds, and why.
    :param say: told what a person should know although nothing stops.
    """

    def __init__(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None = None,
        held_up: HeldUp = lambda _: None,
        say: Say = lambda _: None,
    ) -> None:
        self.source = source_of(spec, connections)
        self.connector = connect(spec, connections, read_seconds, held_up, say)
        self._may_alter = spec.on_schema_change.adds
        self._output: Mapping[str, Any] | None = None

    def expect(self, output: Mapping[str, Any] | None) -> None:
        """Hear what columns the query gives: from now on each observation compares them with the target's.

        :param output: the columns, as Spark writes a struct as JSON; ``None`` to compare nothing any more.
        """
        self._output = output

    def observe(self) -> Observation:
        """Return everything the decision is made from, except Spark's checkpoint.

        :raises AuthenticationError: a service refused the credentials.
        :raises UnavailableError: a service did not answer.
        :raises ConfigurationError: the query's columns do not fit, whatever the sink may do about it.
        """
        observation = self._with_source_end(self.connector.observe(self.source.observe()))
        kept, migration = self._kept(observation), self._migration(observation.data)
        return replace(observation, kept=kept, migration=migration)

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Return which resources these are right now, by role; cheap enough for every epoch."""
        return {Role.SOURCE: self.source.identify(), **self.connector.identify()}

    def source_end_offsets(self) -> Mapping[int, int]:
        """Return the offset after the last record of each source partition."""
        return self.source.observe().high

    def source_record_bytes(self) -> float | None:
        """Return what a record of the source weighs, as far as some of its last ones tell."""
        return self.source.record_bytes()

    def source_offsets_at(self, time_ms: int) -> Mapping[int, int]:
        """Return the offset of the first record of each source partition that is not older than a time.

        :param time_ms: milliseconds since 1970; a partition without such a record is left out.
        """
        return self.source.offsets_at(time_ms)

    def _with_source_end(self, seen: Observation) -> Observation:
        """Return it with an end of the source that was seen behind the records, where they lie beyond it.

        A driver that still runs may have read and committed more since the source was looked at.
        """
        before = seen.source
        if all(at <= before.high.get(partition, at) for partition, at in seen.known.epoch_ends().items()):
            return seen
        now = self.source.observe()
        is_same = now.identity == before.identity
        return replace(seen, source=replace(now, low=before.low) if is_same else now)

    def _kept(self, seen: Observation) -> Mapping[int, int]:
        """Return up to where the source has kept what was read, of partitions that have lost some of it.

        Whose leader is the recorded one has lost nothing: a leader only appends. So nobody is asked about it,
        and the others are asked behind the look that saw their leaders: what a run announces was checked.
        """
        recorded, source = seen.recorded.get(Role.SOURCE), seen.source
        if source.existence is not Existence.PRESENT or recorded is None:
            return {}
        if not source.identity.compared_with(recorded).is_same:
            return {}
        epochs, low = source.leader_epochs, source.low
        return self.source.kept(
            {
                partition: place
                for partition, place in seen.known.log_places().items()
                if partition in epochs and epochs[partition] != place.leader_epoch
                if low.get(partition, 0) < place.offset
            }
        )

    def _migration(self, data: ResourceFacts) -> NeedsMigration | None:
        """Return what the data output lacks, where it can be seen and the sink may have it altered."""
        if self._output is None or not self._may_alter or data.existence is not Existence.PRESENT:
            return None
        evolvable = self.connector.as_schema_evolvable()
        return demanded(evolvable.diff(self._output)) if evolvable is not None and not data.unfit else None

    def close(self) -> None:
        """Drop the clients."""
        self.source.close()
        self.connector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
