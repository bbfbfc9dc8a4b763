"""What the driver tells each task of one epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_sinks.connectors.epoch_writer import WriterFactory
from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId


class StopDriverError(SinkError):
    """This epoch can never be written as it stands: the driver must stop, and a repeated task cannot help."""


@dataclass(frozen=True)
class EpochPlan:
    """What the driver tells each task of one epoch; pickled into the closure.

    :param sink: the sink's name.
    :param record: the progress record of the epoch; writers fill in rows, totals and time.
    :param single_writer: the id of the one writer with ``single``, or ``None`` with ``per_partition``.
    :param source_topic: for messages.
    :param known: by source partition, the position that the driver knows to be committed.
    :param totals: by writer id, the rows and dead letters that the driver knows to be committed.
    :param holders: by writer id, the id of its last holder in this run, as far as the driver knows it.
    :param expected: the writer ids expected to have rows, in the order of the tasks; a hint, no more.
    :param has_dead_letters: whether rows that did not parse have somewhere to go.
    :param dead_letter_example: how a person writes where.
    :param step_rows: a long range is committed after so many rows,
    :param step_seconds: or after so many seconds,
    :param step_bytes: or after so many bytes.
    :param newest: the record of the newest epoch, where the driver commits and so it alone knows; ``None``
        where each writer does, and knows its own.
    :param demand_source: raises unless the source topic is still the recorded one.
    :param factory: makes the target's writers.
    :param limits: how much a writer may set aside.
    """

    sink: str
    record: ProgressRecord
    single_writer: str | None
    source_topic: str
    known: Mapping[int, int]
    totals: Mapping[WriterId, tuple[int, int]]
    holders: Mapping[str, str]
    expected: tuple[str, ...]
    has_dead_letters: bool
    dead_letter_example: str
    step_rows: int
    step_seconds: float
    step_bytes: int
    newest: ProgressRecord | None
    demand_source: Callable[[Identity], None]
    factory: WriterFactory = field(repr=False)
    limits: SetAsideLimits = field(default_factory=SetAsideLimits)

    def repeated(self) -> EpochPlan:
        """Return the plan for an attempt behind a failed one, which may have opened any writer meanwhile.

        A writer that is kept from the epoch before holds nothing then, and whoever believed ``holders`` would
        be fenced by the dead.
        """
        return replace(self, holders={})

    @property
    def driver_commits(self) -> bool:
        """A writer only stages its rows; a long range is then not cut into steps."""
        return self.newest is not None
