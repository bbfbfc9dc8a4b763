"""The sinks that use a connection which is being altered: checked before it, and waited for after it.

Which sinks are waited for, and how many launches each had had, is noted in the task's state store: a retry
that comes after the change would not know it any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.alter.dependents import (
    Baseline,
    Came,
    Dependent,
    Return,
    judge,
    positions_of,
)
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.hooks.connections import options_of
from airflow_provider_sinks.metadata.store import Store

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from airflow_provider_sinks.clients.airflow_api import AirflowApi
    from airflow_provider_sinks.clients.airflow_sinks import SinkAsset

_LOOK_SECONDS = 2.0
_NOTES = "alteration_"
"""What each key of the notes begins with; the rest is the name of the change."""


@dataclass(frozen=True)
class Returns:
    """What became of the sinks that were waited for."""

    by_sink: Mapping[str, Return]

    @property
    def missing(self) -> dict[str, Return]:
        """Those that did not come back."""
        return {
            sink: found for sink, found in self.by_sink.items() if found.came in (Came.FAILED, Came.NOT_YET)
        }

    @property
    def culprits(self) -> dict[str, Return]:
        """Those that ended the waiting: the ones that cannot come back, or all that were too slow."""
        failed = {sink: found for sink, found in self.missing.items() if found.came is Came.FAILED}
        return failed or self.missing


@dataclass(frozen=True)
class _Noted:
    """What was noted down of a change.

    :param at_seconds: when, on the clock of ``time.time``.
    """

    at_seconds: float
    sinks: Mapping[str, Baseline]


class DependentSinks:
    """The sinks that use one connection.

    :param notes: the state store of the task that alters.
    :param log: told whenever a sink that is waited for does something else.
    """

    def __init__(self, api: AirflowApi, conn_id: str, notes: Store, log: Logger) -> None:
        self._api = api
        self._conn_id = conn_id
        self._notes = notes
        self._log = log

    @cached_property
    def seen(self) -> tuple[Dependent, ...]:
        """All of them, as they were when somebody first asked."""
        return tuple(found for found, _ in self.look())

    def look(self) -> Iterator[tuple[Dependent, Mapping[str, Any] | None]]:
        """Yield each of them as it is now, and what Airflow remembers of its progress."""
        from airflow_provider_sinks.clients.airflow_sinks import observe

        for asset in self._assets:
            yield observe(self._api, asset)

    @cached_property
    def _assets(self) -> list[SinkAsset]:
        from airflow_provider_sinks.clients.airflow_sinks import sink_assets

        return [asset for asset in sink_assets(self._api).values() if self._conn_id in asset.connections]

    def note_before(self, change: str) -> None:
        """Note down who is running, and its launches, right before the connection changes.

        :param change: names the change: it is the same in a retry.
        """
        running = {found.sink: found.newest for found, _ in self.look() if found.is_watched}
        self._note(change, {sink: Baseline(seen.counted, 0) for sink, seen in running.items()})

    def note_before_undo(self, change: str, undo: str) -> None:
        """Note down the launches of those that are waited for, right before the old options come back.

        One that never left its old launch need not be launched again.

        :param undo: names the change back.
        """
        counted = {found.sink: found.newest.counted for found, _ in self.look()}
        noted = self._noted(change).sinks
        self._note(undo, {sink: _undone(baseline, counted.get(sink, 0)) for sink, baseline in noted.items()})

    def note_after(self, change: str) -> None:
        """Note down the launches when the change has been read back. Does nothing when that was done."""
        noted = self._noted(change)
        if not any(baseline.after for baseline in noted.sinks.values()):
            counted = {found.sink: found.newest.counted for found, _ in self.look()}
            sinks = {sink: replace(at, after=counted.get(sink, 0)) for sink, at in noted.sinks.items()}
            self._note(change, sinks, noted.at_seconds)

    def noted(self, change: str) -> tuple[str, ...]:
        """Return the sinks that were running right before a change, as noted then."""
        return tuple(sorted(self._noted(change).sinks))

    def wait(
        self,
        change: str,
        altered: ConnectionOptions | None,
        timeout_seconds: float,
        stands: Callable[[], bool] = lambda: True,
    ) -> Returns:
        """Wait until all that were running run on the options that stand now, or one says that it cannot.

        :param altered: those options, if they can be used.
        :param stands: whether the options stand still; asked at every look, for there is nothing to wait for
            when somebody else has edited them.
        :raises UnavailableError: Airflow's API was away when the time was over.
        """
        self.note_after(change)
        noted = self._noted(change)
        began = time.monotonic()
        told: dict[str, str] = {}
        while True:
            is_over = time.monotonic() - began >= timeout_seconds
            try:
                returns, is_overtaken = dict(self._returns(noted, altered)), not stands()
            except UnavailableError:
                if is_over:
                    raise
            else:
                self._tell(returns, told)
                came = {found.came for found in returns.values()}
                if _is_decided(came, is_over=is_over) or is_overtaken:
                    return Returns(returns)
            time.sleep(_LOOK_SECONDS)

    def _returns(self, noted: _Noted, altered: ConnectionOptions | None) -> Iterator[tuple[str, Return]]:
        missing = set(noted.sinks)
        elapsed_seconds = time.time() - noted.at_seconds
        for found, memory in self.look() if missing else ():
            if found.sink not in noted.sinks:
                continue
            missing.discard(found.sink)
            baseline = noted.sinks[found.sink]
            result = judge(baseline, found, elapsed_seconds, rows_waiting=None)
            if result.came is Came.BACK and not found.newest.epoch_done:
                waiting = self._rows_waiting(found, memory, altered)
                result = judge(baseline, found, elapsed_seconds, rows_waiting=waiting)
            yield found.sink, result
        for sink in missing:
            yield sink, Return(Came.ENDED, "is in no DAG any more")

    def _rows_waiting(
        self, found: Dependent, memory: Mapping[str, Any] | None, altered: ConnectionOptions | None
    ) -> bool | None:
        """Return whether the source of a sink has rows for it; ``None`` where that cannot be told."""
        from airflow_provider_sinks.connectors.registry import source_on

        positions = positions_of(memory)
        if found.spec is None or not positions:
            return None
        with suppress(SinkError):
            conn_id = found.spec.source_connection
            is_altered = conn_id == self._conn_id
            options = altered if is_altered and altered else options_of(found.spec, conn_id)
            with closing(source_on(found.spec, options)) as source:
                ends = source.observe().high
            return any(end > positions.get(partition, 0) for partition, end in ends.items())
        return None

    def _note(self, change: str, sinks: Mapping[str, Baseline], at_seconds: float | None = None) -> None:
        at_seconds = time.time() if at_seconds is None else at_seconds
        written = {sink: asdict(baseline) for sink, baseline in sinks.items()}
        self._notes.set(_NOTES + change, {"at_seconds": at_seconds, "sinks": written})

    def _noted(self, change: str) -> _Noted:
        notes = self._notes.get(_NOTES + change)
        if not notes:
            return _Noted(time.time(), {})
        sinks = {sink: Baseline(**baseline) for sink, baseline in notes["sinks"].items()}
        return _Noted(notes["at_seconds"], sinks)

    def _tell(self, returns: Mapping[str, Return], told: dict[str, str]) -> None:
        for sink, found in returns.items():
            if told.get(sink) != found.why:
                told[sink] = found.why
                self._log.info("sink %s: %s: %s", sink, found.came, found.why)


def _is_decided(came: Collection[Came], *, is_over: bool) -> bool:
    """Return whether waiting is over: for good, or for want of time. What settles does so by itself."""
    if Came.FAILED in came or not {Came.NOT_YET, Came.SETTLING}.intersection(came):
        return True
    return is_over and Came.NOT_YET in came


def _undone(baseline: Baseline, counted: int) -> Baseline:
    stays = baseline.before if counted == baseline.before else 0
    return Baseline(before=counted, after=0, stays=stays)
