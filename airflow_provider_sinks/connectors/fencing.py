"""How a run comes into force over a sink: it fences, reads behind the fence, and announces itself.

A start of the job does so, and so do a reset, a rewind, the begin of a replay and a drop. Why nothing that
they go on from can change any more:

1. **Fence, then read.** ``open`` of the target ends every older run and every writer of it, those of the spec
   and those that the records name. Behind it no other holder can commit. What was committed before is in the
   progress that is read then, and nothing follows it. What was read before the fence is advice.
2. **Drivers before writers.** A task of an older run may wake late and open its writer anew: it takes the
   writer's id back, reads the progress behind that, and writes on if its run is in force. It is in force
   while nobody has taken its driver's id. So a target takes the drivers' ids before any writer's: whoever
   takes a writer back behind its fence sees that its driver was overtaken, and whoever did before is fenced.
3. **Until the records name nobody else.** The run in force may have announced writers between the look and
   the fence. They stand in what is read behind it: they are fenced then, and it is read again. Its driver is
   fenced by now and announces no more, so only other starts can keep this going: that ends in an error.
4. **Announce before use.** The driver's record (:mod:`.core.decision.announcement`) is committed by
   compare-and-set before a task of the run opens a writer. Of two starts that fence each other one announces,
   and the next start finds every writer that was ever used in the newest record.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_sinks.connectors.base import Run, SinkConnector
from airflow_provider_sinks.core.decision.announcement import own_writers
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.evolution import NeedsMigration
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.core.spec.sink import SinkSpec

_ROUNDS_MAX = 3


class Fencing:
    """One run on its way into force.

    :param spec: the sink.
    :param target: where its rows are.
    :param observe: looks at source, target and progress, without touching anything.
    """

    def __init__(self, spec: SinkSpec, target: SinkConnector, observe: Callable[[], Observation]) -> None:
        self.run = Run.of(spec)
        self._spec = spec
        self._target = target
        self._observe = observe

    def read_behind(self, looked: Observation) -> Observation:
        """Fence everybody, and return what is seen behind that.

        :param looked: what was seen before; its records name writers that were used.
        :raises UnavailableError: somebody goes on naming new ones.
        :raises SinkError: something could not be seen, or not be fenced.
        """
        self._open(looked)
        for _ in range(_ROUNDS_MAX):
            observation = self._observe()
            if self._open(observation):
                return observation
        raise UnavailableError(
            f'sink "{self._spec.name}" is being started somewhere else',
            "New writers were announced while they were being fenced.",
            "Find out who else starts it; the next try looks again.",
        )

    def announce(self, record: ProgressRecord, migration: NeedsMigration | None = None) -> None:
        """Commit the driver's record, with what the data output is altered by.

        :raises FencedError: a newer run is in force.
        :raises SinkError: no answer yet, or the output cannot be altered like this.
        """
        if migration is None or (evolvable := self._target.as_schema_evolvable()) is None:
            self._target.announce(record)
        else:
            evolvable.apply(migration.steps, record)

    def _open(self, seen: Observation) -> bool:
        """Return whether everybody was fenced already."""
        return self._target.open(self.run, own_writers(self._spec, seen.source), seen)
