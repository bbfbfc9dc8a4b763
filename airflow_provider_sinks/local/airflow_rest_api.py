"""What is asked of a local Airflow over its REST API: its runs, tasks, logs and connections."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local.ports import LOCALHOST
from airflow_provider_sinks.local.processes import LocalServiceError

_POLL_SECONDS = 0.25
_TERMINAL = frozenset({"success", "failed"})


@dataclass(frozen=True)
class DagRun:
    """Names one run of one DAG."""

    dag_id: str
    run_id: str

    @property
    def path(self) -> str:
        """The run's place in the REST API."""
        return f"dags/{self.dag_id}/dagRuns/{self.run_id}"


class AirflowRestApi(ABC):
    """One Airflow as its user sees it; states are awaited, not assumed.

    :param port: of its API server, on this machine.
    :param user: who asks; may do everything.
    :param password: of that user.
    """

    def __init__(self, port: int, user: str, password: str) -> None:
        self._port = port
        self.user = user
        self.password = password

    @property
    def url(self) -> str:
        """Where the user interface is."""
        return f"http://{LOCALHOST}:{self._port}"

    @property
    def api_url(self) -> str:
        """Where the REST API is."""
        return f"{self.url}/api/v2"

    def account(self) -> dict[str, str | int]:
        """Return the fields of a connection that leads to this Airflow's own REST API."""
        return {"host": LOCALHOST, "port": self._port, "login": self.user, "password": self.password}

    def call(self, method: str, path: str, body: object = None, **query: str | int) -> Any:
        """Call the REST API as our user and return the answer's JSON.

        :param path: below ``/api/v2``.
        :raises LocalServiceError: when Airflow answers with an error, which is shown.
        """
        answer = self._client.request(method, path, json=body, params=query)
        if answer.is_error:
            raise LocalServiceError(f"Airflow answered {answer.status_code} to {method} {path}", answer.text)
        return answer.json() if answer.content else None

    def add_connection(self, conn_id: str, conn_type: str, **fields: object) -> None:
        """Store a connection.

        :param fields: ``host``, ``port``, ``login``, ``password``, ``schema``, and ``extra`` as a mapping.
        """
        extra = fields.pop("extra", None)
        body = {"connection_id": conn_id, "conn_type": conn_type, **fields}
        if extra is not None:
            body["extra"] = json.dumps(extra)
        self.call("POST", "connections", body)

    def add_variable(self, key: str, value: str) -> None:
        """Store a Variable."""
        self.call("POST", "variables", {"key": key, "value": value})

    def unpause(self, dag_id: str) -> None:
        """Unpause a DAG as soon as Airflow knows it."""
        self._until(lambda: self._knows(dag_id), f'DAG "{dag_id}" to be read', 240.0)
        self.call("PATCH", f"dags/{dag_id}", {"is_paused": False})

    def last_parsed(self, dag_id: str) -> str:
        """Return when Airflow read a DAG last, as it says it."""
        return str(self.call("GET", f"dags/{dag_id}")["last_parsed_time"])

    def trigger(self, dag_id: str, conf: Mapping[str, object] | None = None) -> DagRun:
        """Unpause a DAG as soon as Airflow knows it, and start a run of it."""
        self.unpause(dag_id)
        run = self.call("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None, "conf": dict(conf or {})})
        return DagRun(dag_id, run["dag_run_id"])

    def run_state(self, run: DagRun) -> str:
        """Return the state of a run."""
        return str(self.call("GET", run.path)["state"])

    def wait_for_run(self, run: DagRun, timeout_seconds: float = 300.0) -> str:
        """Return the final state of a run: ``success`` or ``failed``."""
        self._until(lambda: self.run_state(run) in _TERMINAL, f"{run} to end", timeout_seconds)
        return self.run_state(run)

    def task_states(self, run: DagRun) -> dict[str, str | None]:
        """Return the state of each task of a run; None before it is scheduled."""
        tasks = self.call("GET", f"{run.path}/taskInstances", limit=100)["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}

    def answer(self, run: DagRun, task_id: str, choice: str) -> None:
        """Answer a task that asks a person."""
        answer = {"chosen_options": [choice], "params_input": {}}
        self.call("PATCH", f"{run.path}/taskInstances/{task_id}/-1/hitlDetails", answer)

    def wait_for_task(self, run: DagRun, task_id: str, state: str, timeout_seconds: float = 300.0) -> None:
        """Return when a task of a run has a state."""
        self._until(
            lambda: self.task_states(run).get(task_id) == state,
            f"task {task_id} of {run} to be {state}",
            timeout_seconds,
        )

    def task_events(self, run: DagRun, task_id: str, try_number: int | None = None) -> list[str]:
        """Return what one try of a task logged, one text per event; errors with their messages.

        :param try_number: from 1; None means the newest.
        """
        path = f"{run.path}/taskInstances/{task_id}"
        number = try_number or self.call("GET", path)["try_number"]
        content = self.call("GET", f"{path}/logs/{number}", full_content="true")["content"]
        return [event if isinstance(event, str) else _text(event) for event in content]

    def task_log(self, run: DagRun, task_id: str, try_number: int | None = None) -> str:
        """Return the log of one try of a task; None means the newest."""
        return "\n".join(self.task_events(run, task_id, try_number))

    def close(self) -> None:
        """Close the way to the API; the next question opens another."""
        if client := vars(self).pop("_client", None):
            client.close()

    @abstractmethod
    def last_words(self) -> str:
        """Return what the programs wrote last; asked when a wait for a state ends in vain."""

    def _knows(self, dag_id: str) -> bool:
        if any(dag["dag_id"] == dag_id for dag in self.call("GET", "dags", limit=100)["dags"]):
            return True
        if errors := self.call("GET", "importErrors")["import_errors"]:
            raise LocalServiceError("a DAG file cannot be read", "\n".join(e["stack_trace"] for e in errors))
        return False

    def _until(self, holds: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        if not holds_within(holds, timeout_seconds, pause_seconds=_POLL_SECONDS):
            raise LocalServiceError(f"waited {timeout_seconds:.0f} s for {what}", self.last_words())

    @cached_property
    def _client(self) -> httpx.Client:
        body = {"username": self.user, "password": self.password}
        answer = httpx.post(f"{self.url}/auth/token", json=body, timeout=30).raise_for_status()
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        return httpx.Client(base_url=self.api_url, headers=headers, timeout=60)


def _text(event: Mapping[str, Any]) -> str:
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in event.get("error_detail") or ()]
    return "\n".join([event["event"], *errors])
