"""Which rows have a time that their topic takes: asked before they are produced."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka.columns import TIME, is_null
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.time_limits import AFTER, BEFORE, TimeLimits, read_time_limits
from airflow_provider_sinks.connectors.rows import integers

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.run import KafkaTopics


class RowTimes:
    """The times that a writer's topic takes, as they were when they were last asked for.

    :param options: the connection; holds secrets and is never printed.
    :param sink: the sink's name.
    :param topics: those of the writer.
    """

    def __init__(self, options: KafkaOptions, sink: str, topics: KafkaTopics) -> None:
        self._options = options
        self._sink = sink
        self._topics = topics
        self._known: TimeLimits | None = None

    def refused(self, rows: pa.RecordBatch) -> dict[int, str]:
        """Return which rows the data topic does not take for their times, by index, and why.

        :raises RejectedRowError: when such a row has nowhere else to go.
        :raises UnavailableError: the limits could not be asked for.
        """
        if TIME not in rows.schema.names:
            return {}
        self._known = self._known or self._read()
        times, now_ms = rows.column(TIME), int(time.time() * 1000)
        suspects = _outside(times, *self._known.taken_ms(now_ms))
        if not suspects:
            return {}
        known = self._known = self._read()  # the limits may have been raised since
        judged = {row: known.why_not(times[row].as_py(), now_ms) for row in suspects}
        refused = {row: why for row, why in judged.items() if why}
        if refused and self._topics.dead_letter is None:
            row, why = next(iter(refused.items()))
            raise self.rejection(why, row)
        said = f'Topic "{self._topics.data}" does not take the timestamp of the row.'
        return {row: f"{said} {why}" for row, why in refused.items()}

    def rejection(self, detail: str, row: int | None) -> RejectedRowError:
        """Return our error for a row.

        :param row: its index, where it is known.
        """
        aside = "" if self._topics.dead_letter else " Or set such rows aside: `dead_letter: {topic: ...}`."
        return RejectedRowError(
            f'topic "{self._topics.data}" does not take the timestamp of a row of sink "{self._sink}"',
            detail,
            f"Raise {AFTER} or {BEFORE} of the topic, or write `timestamp: now`.{aside}",
            row,
        )

    def _read(self) -> TimeLimits:
        return read_time_limits(self._options, self._topics.data)


def _outside(times: pa.Array, first: int, last: int) -> list[int]:
    found = integers(times)
    suspects: list[int] = np.flatnonzero(((found < first) | (found > last)) & ~is_null(times)).tolist()
    return suspects
