"""What Airflow knows of a sink: its spec, the DAGs and tasks that run it, what they report. Plain facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sinks.core.launch.status import StatusError
from airflow_provider_sinks.core.lifecycle.state_history import Entry, HistoryState, StateHistory, standing
from airflow_provider_sinks.core.lifecycle.steps import EndDriver, TaskKey

ACTIVE = frozenset(
    {
        "awaiting_input",
        "deferred",
        "queued",
        "restarting",
        "running",
        "scheduled",
        "up_for_reschedule",
        "up_for_retry",
    }
)
"""The states of a task whose driver lives, or may live a moment from now."""


@dataclass(frozen=True)
class SinkTask:
    """One task instance of a sink that is not over.

    :param state: in Airflow's own word.
    :param try_number: of its newest try.
    :param tries_max: how many it may have; 0 where that is not known.
    :param ended_at: when its newest try ended, in UTC.
    """

    key: TaskKey
    state: str
    try_number: int = 0
    tries_max: int = 0
    ended_at: str = ""

    @property
    def told(self) -> str:
        """Its state, and what it waits for."""
        match self.state:
            case "deferred":
                return "deferred (waits in the triggerer; its driver runs on the cluster)"
            case "up_for_retry":
                tries = f"try {self.try_number} of {self.tries_max}" if self.tries_max else "its try"
                ended = f" ended at {self.ended_at}" if self.ended_at else " ended"
                return f"up for retry ({tries}{ended}; Airflow makes the next by itself)"
            case "queued" | "scheduled":
                return f"{self.state} (waits for a worker)"
            case _:
                return self.state.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.key} is {self.told}"


@dataclass(frozen=True)
class SinkDag:
    """One DAG that runs a sink.

    :param schedule: in Airflow's words; empty when nothing but a person or another DAG starts it.
    :param others: the other sinks that it runs.
    """

    dag_id: str
    is_paused: bool
    schedule: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkHome:
    """Everything that Airflow knows of one sink.

    :param spec: as the DAG's author wrote it; may hold templates.
    :param tasks: those that are not over.
    :param drivers: those that run on this machine, or on the cluster that was asked, and how each is ended.
    :param status: the newest status that its task showed, or empty.
    """

    name: str
    spec: Mapping[str, Any]
    connections: tuple[str, ...] = ()
    dags: tuple[SinkDag, ...] = ()
    tasks: tuple[SinkTask, ...] = ()
    drivers: tuple[EndDriver, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    history: StateHistory = ()

    @property
    def is_orphan(self) -> bool:
        """It runs, and no DAG that Airflow knows names it."""
        return not self.dags and bool(self.tasks or self.drivers)

    @property
    def is_paused(self) -> bool:
        """No DAG starts it any more."""
        return all(dag.is_paused for dag in self.dags)

    @property
    def newest_error(self) -> StatusError | None:
        """The newest error that no launch has left behind by committing."""
        found = self.status.get("error")
        texts = {name: str(text) for name, text in (found or {}).items() if name != "launch"}
        return StatusError.from_mapping(texts) if texts else None

    @property
    def standing(self) -> Entry:
        """Where it stands now."""
        heard_at = str(self.status.get("at") or "")
        if not self.dags and not self.is_orphan and not self.history:
            return Entry(HistoryState.STOPPED, heard_at)
        is_active = bool(self.tasks)
        return standing(
            self.history,
            is_active=is_active,
            is_paused=self.is_paused,
            heard_at=heard_at,
            is_orphan=self.is_orphan,
        )
