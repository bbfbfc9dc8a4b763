"""What a sink is doing: one document per launch, written by the job and read by everybody else.

::

    starting --> running --> stopped | refused | fenced | failed
        `------------------> stopped | refused | fenced | failed

A launch ends once: the four states on the right are final, so the first reason is the one that is reported
and a status never flaps. Coming back is a new launch with a new document.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError, kind_of
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.record import WriterId, utc_now
from airflow_provider_sinks.core.progress.witness import Witness


class SinkState(enum.StrEnum):
    """Where a launch stands."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    REFUSED = "refused"
    FENCED = "fenced"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """The launch is over."""
        return not ALLOWED[self]


_FINAL = frozenset({SinkState.STOPPED, SinkState.REFUSED, SinkState.FENCED, SinkState.FAILED})

ALLOWED: Mapping[SinkState, frozenset[SinkState]] = {
    SinkState.STARTING: _FINAL | {SinkState.STARTING, SinkState.RUNNING},
    SinkState.RUNNING: _FINAL | {SinkState.RUNNING},
    SinkState.STOPPED: frozenset(),
    SinkState.REFUSED: frozenset(),
    SinkState.FENCED: frozenset(),
    SinkState.FAILED: frozenset(),
}
"""Which state may follow which."""


@dataclass(frozen=True)
class StatusError:
    """Why a launch ended, in the words of the error that ended it.

    :param kind: the class of the error, such as ``RefusedError``.
    :param connections: the connections that it comes from, where that is known.
    """

    kind: str
    primary: str
    detail: str = ""
    hint: str = ""
    connections: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> StatusError:
        """Describe an error; one that is not ours has no hint."""
        if isinstance(error, SinkError):
            return cls(type(error).__name__, error.primary, error.detail, error.hint, error.connections)
        return cls(type(error).__name__, str(error) or type(error).__name__)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> StatusError:
        """Read an error from parsed JSON; what a newer release says besides is left out."""
        known = {name: data[name] for name in ("kind", "primary", "detail", "hint") if name in data}
        return cls(**known, connections=tuple(data.get("connections", ())))

    def error(self, exit_code: int) -> SinkError:
        """Return the error that was described, of the kind it had.

        :param exit_code: of the driver that left it, for a kind that is not known here.
        """
        kind = kind_of(self.kind, exit_code)
        return kind.told(self.primary, self.detail, self.hint).of(*self.connections)

    def __str__(self) -> str:
        return str(SinkError(self.primary, self.detail, self.hint))


@dataclass(frozen=True)
class SinkStatus:
    """The status document of one launch.

    :param rows: rows committed in this launch.
    :param rows_total: rows committed in this generation, by all writers.
    :param dead_total: dead letters committed in this generation.
    :param rows_before: rows of earlier generations in the data output, from the announcement on.
    :param dead_before: dead letters of earlier generations, likewise.
    :param lag: records of each source partition that are not committed yet.
    :param positions: where each source partition goes on.
    :param identities: the sink's topics, from the announcement on.
    :param writers: every writer that can have a transaction open, from the announcement on.
    :param at: when the driver was last heard of, in UTC.
    :param spark_app_id: Spark's id of the application.
    :param waits_for: what holds it up while it lasts, such as somebody's open transaction.
    :param health: ``well``, or what is not well with the target; empty until it was asked.
    :param metrics: figures about the target.
    """

    sink: str
    launch: int
    state: SinkState = SinkState.STARTING
    run: str = ""
    owner: str = ""
    generation: int = 0
    epoch: int = 0
    rows: int = 0
    rows_total: int = 0
    dead_total: int = 0
    rows_before: int = 0
    dead_before: int = 0
    rows_per_second: float = 0.0
    lag: Mapping[int, int] = field(default_factory=dict)
    positions: Mapping[int, int] = field(default_factory=dict)
    identities: Identities | None = None
    writers: tuple[WriterId, ...] = ()
    error: StatusError | None = None
    started_at: str = field(default_factory=utc_now)
    at: str = field(default_factory=utc_now)
    spark_ui_url: str = ""
    spark_app_id: str = ""
    waits_for: str = ""
    health: str = ""
    metrics: Mapping[str, int | float | str] = field(default_factory=dict)

    @classmethod
    def begun(cls, sink: str, launch: int, owner: str, witness: Witness | None) -> SinkStatus:
        """Return the first status of a launch: what Airflow remembers is known before anything was read."""
        first = cls(sink=sink, launch=launch, owner=owner)
        if witness is None:
            return first
        return replace(
            first,
            generation=witness.generation,
            epoch=witness.epoch,
            rows_total=witness.rows,
            dead_total=witness.dead,
            rows_before=witness.rows_before,
            dead_before=witness.dead_before,
        )

    def transition(self, state: SinkState, **changes: Any) -> SinkStatus:
        """Return the status that follows, with ``changes`` to its fields and a new time.

        :raises ValueError: ``state`` may not follow; a final state stays as it is.
        """
        if state not in ALLOWED[self.state]:
            raise ValueError(f"launch {self.launch} of sink {self.sink!r} is {self.state}, not to be {state}")
        return replace(self, **{"at": utc_now(), **changes, "state": state})

    def ended(self, error: BaseException | None = None) -> SinkStatus:
        """Return the final status that fits ``error``; a status that is final already stays as it is."""
        if self.state.is_final:
            return self
        if error is None:
            return self.transition(SinkState.STOPPED, waits_for="")
        return self.transition(_state_of(error), error=StatusError.of(error), waits_for="")

    def one_line(self) -> str:
        """Return the line that a log shows, such as ``epoch 12: 50,000 rows, 41,200 rows/s, lag 0``."""
        if self.error is not None:
            return f"{self.state}: {self.error.primary}"
        if self.waits_for:
            return f"{self.state}, waits: {self.waits_for}"
        if self.state is SinkState.STARTING and self.epoch:
            return f"starting, goes on after epoch {self.epoch}"
        if self.state is not SinkState.RUNNING:
            return f"{self.state}, epoch {self.epoch}: {self.rows:,} rows" if self.epoch else str(self.state)
        if not self.lag:  # no epoch of this launch has ended yet
            return f"running, goes on after epoch {self.epoch}" if self.epoch else "running"
        rate, lag = f"{self.rows_per_second:,.0f} rows/s", f"lag {sum(self.lag.values()):,}"
        dead = f", {self.dead_total:,} dead letters" if self.dead_total else ""
        return f"epoch {self.epoch}: {self.rows:,} rows, {rate}, {lag}{dead}"

    def witness(self) -> Witness | None:
        """Return what Airflow should remember, or None before the run was announced."""
        if self.identities is None:
            return None
        return Witness(
            generation=self.generation,
            epoch=self.epoch,
            rows=self.rows_total,
            dead=self.dead_total,
            rows_before=self.rows_before,
            dead_before=self.dead_before,
            offsets=self.positions,
            identities=self.identities,
            owner=self.owner,
            launch=self.launch,
            at=self.at,
        )

    def to_json(self) -> str:
        """Write it as JSON with sorted keys."""
        identities = self.identities.to_mapping() if self.identities else None
        return json.dumps({**asdict(self), "identities": identities}, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> SinkStatus:
        """Read a status as ``to_json`` wrote it."""
        data = json.loads(text)
        for name in ("lag", "positions"):
            data[name] = {int(partition): int(number) for partition, number in data[name].items()}
        data["writers"] = tuple(data.get("writers", ()))
        identities, error = data["identities"], data["error"]
        data["identities"] = Identities.from_mapping(identities) if identities is not None else None
        data["error"] = StatusError.from_mapping(error) if error is not None else None
        return cls(**{**data, "state": SinkState(data["state"])})


def _state_of(error: BaseException) -> SinkState:
    if isinstance(error, RefusedError):
        return SinkState.REFUSED
    return SinkState.FENCED if isinstance(error, FencedError) else SinkState.FAILED
