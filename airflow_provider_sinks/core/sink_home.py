"""What Airflow knows of a sink: its spec, the DAGs and tasks that run it, what they report. Plain facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sinks.core.life import Entry, History, standing
from airflow_provider_sinks.core.steps import TaskPlace

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
    """One task instance of a sink that is not over."""

    place: TaskPlace
    state: str

    def __str__(self) -> str:
        return f"{self.place} is {self.state}"


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
    :param status: the newest status that its task showed, or empty.
    """

    name: str
    spec: Mapping[str, Any]
    connections: tuple[str, ...] = ()
    dags: tuple[SinkDag, ...] = ()
    tasks: tuple[SinkTask, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    history: History = ()

    @property
    def is_paused(self) -> bool:
        """No DAG starts it any more."""
        return all(dag.is_paused for dag in self.dags)

    @property
    def standing(self) -> Entry:
        """Where it stands now."""
        heard_at = str(self.status.get("at") or "")
        is_active = bool(self.tasks)
        return standing(self.history, is_active=is_active, is_paused=self.is_paused, heard_at=heard_at)
