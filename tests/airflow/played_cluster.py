"""A task in cluster mode whose cluster a test plays: its tries, its notes, and what it submits."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.fake_manager import FakeManager
from tests.airflow.fakes import SINK

if TYPE_CHECKING:
    from airflow_provider_sinks.operators.submit.client_launch import Submission
    from airflow_provider_sinks.operators.submit.cluster_launch import ClusterLaunch
    from airflow_provider_sinks.operators.submit.cluster_site import ClusterSite
    from airflow_provider_sinks.operators.submit.cluster_task import ClusterTask
    from airflow_provider_sinks.operators.submit.launch import Listeners

_SPEC = SinkSpec.parse(SINK)


@dataclass
class Task:
    """A task and its tries.

    :param folder: for checkpoints and status.
    :param notes: the task's own state store.
    :param connections: as they stand now.
    :param newest: the number of the sink's newest launch, of this task or of another.
    """

    manager: FakeManager
    folder: Path
    cleared: int = 0
    owner: str = "us"
    durable: bool = True
    notes: dict[str, Any] = field(default_factory=dict)
    retentions: list[Any] = field(default_factory=list)
    submitted: list[dict[str, Any]] = field(default_factory=list)
    connections: ResolvedConnections = field(default_factory=lambda: ResolvedConnections({}))
    newest: int = 0
    told: list[SinkStatus] = field(default_factory=list)
    shown: list[SinkStatus] = field(default_factory=list)
    fails: bool = False

    def get(self, key: str, default: Any = None) -> Any:
        return self.notes.get(key, default)

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        self.notes[key] = json.loads(json.dumps(value))
        self.retentions.append(retention)

    def try_once(self, status_root: str = "") -> ClusterLaunch:
        """Return the launch of another try."""
        from airflow_provider_sinks.metadata.memory import Memory
        from airflow_provider_sinks.operators.submit.cluster_launch import ClusterLaunch
        from airflow_provider_sinks.operators.submit.launch import LaunchOrder

        memory = Memory(self.owner, len(self.submitted) + 1)
        return ClusterLaunch(
            _SPEC,
            lambda: LaunchOrder(_SPEC, self.connections, memory),
            self._submit,
            listeners=self._listeners(),
            site=self._site(status_root),
            owner=self.owner,
            connections=self.connections.visible_digests(),
        )

    def come_back(self) -> ClusterTask:
        """Return the task after the triggerer."""
        from airflow_provider_sinks.operators.submit.cluster_task import ClusterTask

        return ClusterTask(_SPEC, self._listeners(), self._site())

    def _listeners(self) -> Listeners:
        from airflow_provider_sinks.metadata.memory import Memory, SinkMemory
        from airflow_provider_sinks.operators.submit.launch import Listeners

        log: Any = logging.getLogger("test")
        memory = SinkMemory(_SPEC.name, None, log)
        memory.recall = lambda: Memory(self.owner, self.newest)  # type: ignore[method-assign]
        memory.show = self._show  # type: ignore[method-assign]
        return Listeners(memory, log, self.told.append)

    def _show(self, status: SinkStatus) -> bool:
        self.shown.append(status)
        return True

    def _site(self, status_root: str = "") -> ClusterSite:
        from airflow_provider_sinks.clients.yarn import YarnClient
        from airflow_provider_sinks.operators.submit.cluster_site import ClusterSite

        return ClusterSite(
            client=YarnClient(self.manager.url),
            store=self,
            clears=self.cleared,
            durable=self.durable,
            status_root=status_root or self.folder.as_uri(),
            poll_seconds=0.1,
        )

    def _submit(self, submission: Submission, take: object) -> None:
        """Do what ``spark-submit`` does."""
        del take
        launch = json.loads(submission.files[0].read_text())
        seen = {"note": dict(self.notes["sink_driver"]), "launch": launch, "files": submission.files}
        self.submitted.append({**seen, "running": [app["id"] for app in self.manager.apps.values()
                                                   if app["state"] == "RUNNING"]})  # fmt: skip
        if self.fails:
            raise RuntimeError("no queue")
        self.manager.run(f"application_1_{len(self.submitted):04d}", *submission.tags)
