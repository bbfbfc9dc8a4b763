"""Where the rows of a sink come from: what its kind tells the rest of the package, which knows it by no name.

There is one kind of source, a Kafka topic; its spec is ``core/spec/source.py``, and how Spark reads it
``streaming/source.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.core.decision.facts import ResourceFacts
from airflow_provider_sinks.core.progress.log_place import LogPlace

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
    from airflow_provider_sinks.core.spec.sink import SinkSpec

SourceLook: TypeAlias = Callable[[str], ResourceFacts]
"""Tells which source has a name right now; pickled into tasks, and its ``repr`` hides secrets."""


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

    def close(self) -> None:
        """Drop the client. Idempotent; must not raise."""


class SourceKind(ConnectorKind, Protocol):
    """A kind that is a source too."""

    def source(self, spec: SinkSpec, connections: ResolvedConnections) -> SinkSource:
        """Return the source of a sink; its client is made when it is asked something.

        :raises ConfigurationError: its connection is not there, or of another type.
        """
