"""Where the rows of a sink come from: what its kind tells the rest of the package, which knows it by no name.

There is one kind of source, a Kafka topic; its spec is ``core/spec/source.py``, and how Spark reads it
``streaming/source.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.core.decision.facts import ResourceFacts
from airflow_provider_sinks.core.progress.log_place import LogPlace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from airflow_provider_sinks.connectors.stored_letters import LetterCopies
    from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
    from airflow_provider_sinks.core.spec.sink import SinkSpec

SourceLook: TypeAlias = Callable[[str], ResourceFacts]
"""Tells which source has a name right now; pickled into tasks, and its ``repr`` hides secrets."""


class ReadRange(Protocol):
    """Reads a range of a source in a task, without Spark. Pickled into tasks; its ``repr`` hides secrets."""

    def __call__(
        self, partition: int, begin: int, end: int, leader_epoch: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all records of a range, or raise. Called once for each try of a task.

        :param begin: the first offset.
        :param end: the one behind the last.
        :param leader_epoch: the newest of the partition, as it was seen for this range: what was fetched
            under another one is not used. ``None`` where it is not known.
        :returns: batches of :data:`.rows.PARTITION`, ``OFFSET``, ``RAW_KEY`` and ``RAW_VALUE``, in the order
            of offsets.
        :raises JobFailedError: some are gone.
        """


class SinkSource(Protocol):
    """The source of one sink, on the driver and in Airflow. Creates nothing; safe for threads.

    Whoever asks hears :class:`AuthenticationError` where the service refuses the credentials, and
    :class:`UnavailableError` where it does not answer.
    """

    def observe(self) -> ResourceFacts:
        """Return which one it is, and where its partitions begin and end."""

    def identify(self) -> ResourceFacts:
        """Return which one it is; cheap enough for every epoch."""

    def ends(self, partitions: Iterable[int]) -> Mapping[int, LogPlace]:
        """Return where partitions end, with the newest leader epoch; cheap enough for every epoch.

        One without a leader, or of which no leader epoch is known, is left out.
        """

    def kept(self, places: Mapping[int, LogPlace]) -> Mapping[int, int]:
        """Return up to where partitions have kept what was before a place, of those that have lost some."""

    def offsets_at(self, time_ms: int) -> Mapping[int, int]:
        """Return the offset of the first record of each partition that is not older than a time.

        :param time_ms: milliseconds since 1970; a partition without such a record is left out.
        """

    def record_bytes(self) -> float | None:
        """Return what a record weighs, as far as some of the last ones tell."""

    def spark_options(self) -> Mapping[str, str]:
        """Return the options by which Spark's reader reaches it. They hold secrets. No I/O."""

    def look(self) -> SourceLook:
        """Return how a task looks at it."""

    def read_range(self, *, reads_on: bool) -> ReadRange:
        """Return how a task reads it without Spark. No I/O but for the files of the connection.

        :param reads_on: whether one process reads one range after another, so that it may fetch what follows.
        """

    def close(self) -> None:
        """Drop the client. Idempotent; must not raise."""


class SourceKind(ConnectorKind, Protocol):
    """A kind that is a source too."""

    def source(self, spec: SinkSpec, connections: ResolvedConnections) -> SinkSource:
        """Return the source of a sink; its client is made when it is asked something.

        :raises ConfigurationError: its connection is not there, or of another type.
        """

    def letter_copies(
        self, spec: SinkSpec, connections: ResolvedConnections
    ) -> AbstractContextManager[LetterCopies]:
        """Return the copies of dead letters that are the source of a replay.

        :raises ConfigurationError: its connection is not there, or of another type.
        """
