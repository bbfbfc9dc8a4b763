"""The log of the source under a running sink: what each epoch's record says of it, and that it was not cut.

A source whose brokers lose records gives their offsets to others, also between two epochs. So a range that
the log was not yet seen to reach is looked at before its rows are read: under which leader epoch the log
reaches it, for the record; and where that is another one than before, whether what was read is still there
(:mod:`.core.progress.log_place`). In a catch-up one look serves many epochs.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_sinks.connectors.source import SinkSource
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.log_place import LogPlace
from airflow_provider_sinks.core.wording import ranges
from airflow_provider_sinks.streaming.source import Offsets


class SourceLog:
    """The log of one source topic, as far as it was seen.

    :param topic: its name.
    :param seen: where its partitions ended when the run was announced.
    """

    def __init__(self, source: SinkSource, topic: str, seen: Mapping[int, LogPlace]) -> None:
        self._source = source
        self._topic = topic
        self._seen = dict(seen)

    def leader_epochs(self, begin: Offsets, end: Offsets) -> dict[int, int]:
        """Return the leader epochs that an epoch's record names, of the partitions where they are known.

        Brokers that do not answer stop nobody here: Spark reads from them and says so.

        :param begin: first offset of each source partition; what is before it was read.
        :param end: offset after the last one.
        :raises RefusedError: what was read is not there any more.
        """
        if any(not self._reaches(partition, at) for partition, at in end.items()):
            self._look(begin, end)
        return {p: self._seen[p].leader_epoch for p, at in end.items() if self._reaches(p, at)}

    def _reaches(self, partition: int, offset: int) -> bool:
        return partition in self._seen and self._seen[partition].offset >= offset

    def _look(self, begin: Offsets, end: Offsets) -> None:
        try:
            now = self._source.ends(end)
            kept = self._source.kept(self._before_others(begin, now))
        except UnavailableError:
            return
        lost = {p: (at, begin[p]) for p, at in kept.items()}
        if lost:
            raise RefusedError(
                f'source topic "{self._topic}" has lost records while the sink ran',
                f"Read were offsets {ranges(lost)} (by source partition), and others have them now.",
                "Start the sink again: it decides from its progress what can be done.",
            )
        self._seen.update(now)

    def _before_others(self, begin: Offsets, now: Mapping[int, LogPlace]) -> dict[int, LogPlace]:
        """Return the places that were read to under another leader than there is now."""
        return {
            partition: LogPlace(begin[partition], seen.leader_epoch)
            for partition, seen in self._seen.items()
            if begin.get(partition, 0) > 0 and partition in now
            if now[partition].leader_epoch != seen.leader_epoch
        }
