"""Which rows have a time that their topic takes: asked before they are produced.

Where nobody may read the topic's limits, the broker alone knows them: it refuses a row, and with it the whole
transaction. Then it is asked about single rows (:meth:`RowTimes.learn`), and the others are written anew.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka.columns import TIME, is_null
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.time_limits import (
    AFTER,
    BEFORE,
    LearntLimits,
    TimeLimits,
    read_time_limits,
)
from airflow_provider_sinks.connectors.kafka.topic_facts import grant
from airflow_provider_sinks.connectors.rows import integers
from airflow_provider_sinks.core.errors import SinkError, UnavailableError

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.run import KafkaTopics

IsTaken = Callable[[pa.RecordBatch], bool]
"""Asks the broker about a batch of one row."""
_REMEMBERED_SECONDS = 60.0


class HiddenLimitsError(RejectedRowError):
    """A broker refused a time, and its topic's limits cannot be read."""


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
        self._learnt = LearntLimits()
        self._asked_at = 0.0

    def refused(self, rows: pa.RecordBatch) -> dict[int, str]:
        """Return which rows the data topic does not take for their times, by index, and why.

        :raises RejectedRowError: when such a row has nowhere else to go.
        :raises UnavailableError: the limits could not be asked for.
        """
        if TIME not in rows.schema.names:
            return {}
        self._known = self._known or self._read()
        refused = self._refused(rows.column(TIME), self._known)
        if refused and self._topics.dead_letter is None:
            row, why = next(iter(refused.items()))
            raise self.rejection(why, row)
        said = f'Topic "{self._topics.data}" does not take the timestamp of the row.'
        return {row: f"{said} {why}" for row, why in refused.items()}

    @property
    def are_hidden(self) -> bool:
        """Whether rows have times, and the limits of those cannot be read."""
        return self._known is not None and self._known.is_hidden

    def refusal(self) -> SinkError:
        """Return our error for a row whose time the broker refused, although it was not known before.

        Where the limits can be read, it is never final: a writer that is opened anew goes by those of then.
        Where they are the same, the two clocks differ, or the row was long on its way, and time helps: the
        broker's clock arrives where it takes the row, or ours where it is set aside.

        :raises UnavailableError: the limits could not be asked for.
        """
        before, now = self._known, self._read()
        topic = f'topic "{self._topics.data}"'
        if before is not None:
            self._known = now
        if before is not None and now.is_hidden:
            return self._hidden()
        if before is not None and now != before:
            return UnavailableError(
                f"{AFTER} or {BEFORE} of {topic} has changed",
                "It refused the timestamp of a row.",
                "The task is repeated; nothing of it is visible.",
            )
        return UnavailableError(
            f"{topic} refused a timestamp that its limits allow",
            "Its broker goes by its own clock, and by when the row arrives.",
            "The task is repeated; nothing of it is visible. Set the clocks of brokers and executors alike.",
        )

    def learn(self, batches: Sequence[pa.RecordBatch], is_taken: IsTaken) -> bool:
        """Find out which is the nearest of these times that the broker refuses; return whether there is one.

        Who is further away from now than one that is refused is refused too, so few of them are asked about.

        :param batches: rows that nothing else is wrong with.
        """
        times, place = _places(batches)

        def nearest(order: np.ndarray) -> int | None:
            def is_refused(at: int) -> bool:
                batch, row = place(int(order[at]))
                return not is_taken(batches[batch].slice(row, 1))

            if not len(order) or not is_refused(len(order) - 1):
                return None
            return int(times[order[bisect_left(range(len(order)), True, key=is_refused)]])

        order = np.argsort(times, kind="stable")
        first_ahead = int(np.searchsorted(times[order], _now_ms(), side="right"))
        ahead, behind = nearest(order[first_ahead:]), nearest(order[:first_ahead][::-1])
        if ahead is not None:
            self._learnt = replace(self._learnt, last_ms=ahead - 1)
        if behind is not None:
            self._learnt = replace(self._learnt, first_ms=behind + 1)
        self._asked_at = time.monotonic()
        return ahead is not None or behind is not None

    def go_on(self) -> None:
        """Forget limits that were hidden a while ago, and what was learnt of them. Called between commits."""
        if self.are_hidden and time.monotonic() - self._asked_at > _REMEMBERED_SECONDS:
            self._known, self._learnt = None, LearntLimits()

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

    def _hidden(self) -> HiddenLimitsError:
        told = self.rejection("The broker refused it; this user may not read the limits of the topic.", None)
        command = grant(self._topics.data, "DescribeConfigs", self._options.bootstrap_servers)
        return HiddenLimitsError(told.primary, told.detail, f"{told.hint} To have the row named: {command}")

    def _refused(self, times: pa.Array, known: TimeLimits) -> dict[int, str]:
        now_ms = _now_ms()
        if known.is_hidden:
            beyond = _outside(times, self._learnt.first_ms, self._learnt.last_ms)
            return {row: self._learnt.why_not(times[row].as_py()) for row in beyond}
        suspects = _outside(times, *known.taken_ms(now_ms))
        if not suspects:
            return {}
        self._known = known = self._read()  # the limits may have been raised since
        judged = {row: known.why_not(times[row].as_py(), now_ms) for row in suspects}
        return {row: why for row, why in judged.items() if why}

    def _read(self) -> TimeLimits:
        self._asked_at = time.monotonic()
        return read_time_limits(self._options, self._topics.data)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _places(batches: Sequence[pa.RecordBatch]) -> tuple[np.ndarray, Callable[[int], tuple[int, int]]]:
    """Return all times, and where each of them stands: in which batch, and which of its rows."""
    columns = [batch.column(TIME) for batch in batches]
    kept = [np.flatnonzero(~is_null(column)) for column in columns]
    found = [integers(column)[rows] for column, rows in zip(columns, kept, strict=True)]
    ends = np.cumsum([len(rows) for rows in kept])

    def place(at: int) -> tuple[int, int]:
        batch = int(np.searchsorted(ends, at, side="right"))
        return batch, int(kept[batch][at - int(ends[batch]) + len(kept[batch])])

    return np.concatenate([np.zeros(0, np.int64), *found]), place


def _outside(times: pa.Array, first: int, last: int) -> list[int]:
    found = integers(times)
    suspects: list[int] = np.flatnonzero(((found < first) | (found > last)) & ~is_null(times)).tolist()
    return suspects
