"""The memory connector, on the driver: small, whole, and the first one to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.connectors.memory.store import MemoryStore, Outputs
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
)
from airflow_provider_sinks.core.errors import FencedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.memory.writer import MemoryWriterFactory

_TIMEOUT = timedelta(seconds=60)


class MemoryConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what.

    :param store: the target.
    :param sink: the sink's name.
    :param commits_on: the executor, or the driver by tokens.
    """

    def __init__(
        self, store: MemoryStore, sink: str, outputs: Outputs, commits_on: CommitsOn = CommitsOn.EXECUTOR
    ) -> None:
        self._store = store
        self._sink = sink
        self._outputs = outputs
        self._commits_on = commits_on
        self._run = ""
        self._generation = 0

    @property
    def service(self) -> str:
        """Who is asked."""
        return "memory"

    def capabilities(self) -> Capabilities:
        """Return what the target can give."""
        return Capabilities(self._commits_on)

    def project(self, output: DataFrame) -> DataFrame:
        """Return the rows as they are: whatever has a name is kept under it."""
        return output

    def observe(self, source: ResourceFacts) -> Observation:
        """Return what is there."""
        with self._store.locked():
            seen = self.identify()
            return Observation(
                source=source,
                data=seen[Role.DATA],
                progress=seen[Role.PROGRESS],
                dead_letter=seen.get(Role.DEAD_LETTER),
                history=self.progress(),
            )

    def identify(self) -> dict[Role, ResourceFacts]:
        """Return which outputs these are now."""
        return {role: self._facts(name) for role, name in self._names().items()}

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Take every writer of the sink for this run, once: nobody else commits from here on."""
        del looked
        if self._run == run.id:
            self.demand_in_force()
            return True
        self._store.take_run(
            self._sink, run.id, {DRIVER, SINGLE_WRITER, *writers, *self.progress().writers_ever}
        )
        self._run = run.id
        return False

    def ensure(self, creation: Creation) -> None:
        """Make an output unless it is there."""
        self._store.ensure(creation.name)

    def announce(self, record: ProgressRecord) -> None:
        """Commit a record of the driver, unless that is done."""
        held = self._store.take_writer(self._sink, self._run, DRIVER)
        if held.record != record:
            self._store.commit(self._sink, DRIVER, held, record, {})
        self._generation = record.generation

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took over."""
        found = self._store.run_in_force(self._sink, DRIVER)
        if found != self._run:
            raise FencedError(f'a newer start of sink "{self._sink}" took over', f"Run {found} is in force.")

    def factory(self) -> MemoryWriterFactory:
        """Return what makes the writers of the announced run."""
        from airflow_provider_sinks.connectors.memory.writer import MemoryWriterFactory

        return MemoryWriterFactory(
            self._store, self._sink, self._run, self._generation, self._outputs, self._commits_on
        )

    def commit_epoch(self, record: ProgressRecord, tokens: Sequence[Token]) -> None:
        """Publish what the tokens stand for; where executors commit, there is nothing left to do."""
        if self._commits_on is CommitsOn.DRIVER:
            self._store.publish(self._sink, self._run, record, tokens, self._outputs)

    def rollback_epoch(self, tokens: Sequence[Token]) -> None:
        """Forget what the tokens stand for."""
        self._store.drop([token.name for token in tokens])

    def progress(self) -> History:
        """Return what is committed now."""
        return self._store.history(self._sink)

    def sweep(self) -> None:
        """Forget what older runs staged."""
        with self._store.locked():
            self.demand_in_force()
            self._store.sweep(self._run)

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty an output, or forget it; nobody takes over meanwhile."""
        with self._store.locked():
            self.demand_in_force()
            self._store.reset(step.facts.name, step.facts.id, empties=isinstance(step, EmptyOutput))

    def health_check(self) -> Health:
        """Return that memory is well."""
        return Health(is_well=True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return how much there is."""
        found = self._store.outputs.get(self._outputs.data)
        return {"rows": len(found.rows) if found else 0}

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open; nothing here ends one."""
        return _TIMEOUT

    def _names(self) -> dict[Role, str]:
        found = {Role.DATA: self._outputs.data, Role.PROGRESS: self._outputs.progress}
        return found | ({Role.DEAD_LETTER: self._outputs.dead_letter} if self._outputs.dead_letter else {})

    def _facts(self, name: str) -> ResourceFacts:
        found = self._store.outputs.get(name)
        if found is None:
            return ResourceFacts(name, Existence.MISSING)
        return ResourceFacts(name, Existence.PRESENT, self._store.id, found.id)
