"""A real Airflow for tests and the demo: four programs, one database, one user, bound to this machine.

    with AirflowStack.start(folder, dags_folder) as airflow:
        run = airflow.trigger("my_dag")
        assert airflow.wait_for_run(run) == "success"

States are awaited through the API. Nothing here imports ``airflow``: the programs are started, not used.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local import forked_airflow
from airflow_provider_sinks.local.metadata_database import MetadataDatabase
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError, Service
from airflow_provider_sinks.local.progress import step

_READY_SECONDS = 300.0
_FIRST_ANSWER_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25
_TERMINAL = frozenset({"success", "failed"})
_AUTH_MANAGER = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"


@dataclass(frozen=True)
class DagRun:
    """Names one run of one DAG."""

    dag_id: str
    run_id: str

    @property
    def path(self) -> str:
        """The run's place in the REST API."""
        return f"dags/{self.dag_id}/dagRuns/{self.run_id}"


class AirflowStack:
    """One Airflow with its own home, user and password."""

    def __init__(
        self,
        home: Path,
        dags_folder: Path,
        env: Mapping[str, str],
        python: str = sys.executable,
        postgres: Postgres | None = None,
        *,
        forked: bool = False,
    ) -> None:
        self.home = home
        self._program = [python, "-m", "airflow"]
        self.dags_folder = dags_folder
        self.user = "admin"
        self.password = secrets.token_urlsafe(12)
        self._port = free_port()
        self._passwords = home / "passwords.json"
        self.metadata = MetadataDatabase(home / "airflow.db", postgres)
        self.environment = {**_clean_environment(), **self._settings(), **env}
        commands = {"": [python, "-m", forked_airflow.__name__]} if forked else self._commands()
        self._services = {
            name: Service(f"airflow {name}".strip(), command, home, env=self.environment)
            for name, command in commands.items()
        }

    @classmethod
    def start(
        cls,
        home: Path,
        dags_folder: Path,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        postgres: Postgres | None = None,
        *,
        forked: bool = False,
    ) -> Self:
        """Start an Airflow and return when its API answers and its parts report that they are healthy.

        :param home: for its database, configuration and logs.
        :param dags_folder: where it looks for DAG files.
        :param env: more environment variables, which win over ours; tasks see them too.
        :param python: the program of an environment that has an Airflow; ours by default.
        :param postgres: the server of its database; see :class:`MetadataDatabase`.
        :param forked: as one service, which starts in less processor time (see ``forked_airflow.py``); none
            of the four can be ended or started again alone, and ``python`` must have this package.
        """
        stack = cls(home, dags_folder, env or {}, python, postgres, forked=forked)
        try:
            with step("Airflow") as line:
                line.say("making the database")
                stack._make_home()
                if not forked:
                    stack._make_tables()
                line.say("starting four programs")
                for service in stack._services.values():
                    service.start()
                first = next(iter(stack._services.values()))
                first.wait_until(stack._healthy, _READY_SECONDS, _POLL_SECONDS)
        except BaseException:
            stack.stop()
            raise
        return stack

    @classmethod
    def make(cls, home: Path, dags_folder: Path) -> Self:
        """Make an Airflow's home and database, and start nothing: enough for ``airflow dags test``.

        :param home: as for :meth:`start`.
        :param dags_folder: as for :meth:`start`.
        """
        stack = cls(home, dags_folder, {})
        stack._make_home()
        stack._make_tables()
        return stack

    @property
    def url(self) -> str:
        """Where the user interface is."""
        return f"http://{LOCALHOST}:{self._port}"

    @property
    def api_url(self) -> str:
        """Where the REST API is."""
        return f"{self.url}/api/v2"

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

    def account(self) -> dict[str, str | int]:
        """Return the fields of a connection that leads to this Airflow's own REST API."""
        return {"host": LOCALHOST, "port": self._port, "login": self.user, "password": self.password}

    def unpause(self, dag_id: str) -> None:
        """Unpause a DAG as soon as Airflow knows it."""
        self._until(lambda: self._knows(dag_id), f'DAG "{dag_id}" to be read', 60.0)
        self.call("PATCH", f"dags/{dag_id}", {"is_paused": False})

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

    def wait_for_task(self, run: DagRun, task_id: str, state: str, timeout_seconds: float = 120.0) -> None:
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

    def command(self, *arguments: str) -> str:
        """Run an ``airflow`` command beside this Airflow and return what it prints."""
        done = subprocess.run(
            [*self._program, *arguments],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            output = f"{done.stdout}{done.stderr}".splitlines()
            raise LocalServiceError(f"airflow {' '.join(arguments)} failed", "\n".join(output[-30:]))
        return done.stdout

    def stop(self) -> None:
        """End the four programs, and the tasks that run."""
        if "_client" in vars(self):
            self._client.close()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda service: service.stop(_GRACE_SECONDS), self._services.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _settings(self) -> dict[str, str]:
        settings = {
            "CORE__AUTH_MANAGER": _AUTH_MANAGER,
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{self.user}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._passwords),
            "CORE__DAGS_FOLDER": str(self.dags_folder),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": "4",
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "DATABASE__SQL_ALCHEMY_CONN": self.metadata.url,
            "DATABASE__CHECK_MIGRATIONS": "False",
            "LOGGING__BASE_LOG_FOLDER": str(self.home / "logs"),
            "LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            "LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "API__HOST": LOCALHOST,
            "API__PORT": str(self._port),
            "API__BASE_URL": self.url,
            "API__WORKERS": "1",
            "API__SECRET_KEY": secrets.token_hex(16),
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "DAG_PROCESSOR__REFRESH_INTERVAL": "2",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        }
        home = {"AIRFLOW_HOME": str(self.home)}
        return home | {f"AIRFLOW__{name}": value for name, value in settings.items()}

    def _make_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.dags_folder.mkdir(parents=True, exist_ok=True)
        self._passwords.write_text(json.dumps({self.user: self.password}))
        self._passwords.chmod(0o600)
        self.metadata.make()

    def _make_tables(self) -> None:
        self.command("db", "migrate")

    def _commands(self) -> dict[str, list[str]]:
        return {name: [*self._program, name] for name in forked_airflow.COMPONENTS}

    def _healthy(self) -> bool:
        for service in self._services.values():
            if not service.running:
                raise service.failure(f"{service.name} ended")
        try:
            # The first request to the tasks' own API builds it, and nothing else is answered for seconds.
            httpx.get(f"{self.url}/execution/health", timeout=_FIRST_ANSWER_SECONDS)
            parts = httpx.get(f"{self.api_url}/monitor/health", timeout=5).raise_for_status().json()
        except httpx.HTTPError:
            return False
        return all(part["status"] == "healthy" for part in parts.values())

    def _knows(self, dag_id: str) -> bool:
        if any(dag["dag_id"] == dag_id for dag in self.call("GET", "dags", limit=100)["dags"]):
            return True
        if errors := self.call("GET", "importErrors")["import_errors"]:
            raise LocalServiceError("a DAG file cannot be read", "\n".join(e["stack_trace"] for e in errors))
        return False

    def _until(self, holds: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        if not holds_within(holds, timeout_seconds, pause_seconds=_POLL_SECONDS):
            raise LocalServiceError(f"waited {timeout_seconds:.0f} s for {what}", self._last_words())

    def _last_words(self) -> str:
        return "\n".join(str(service.failure(service.name)) for service in self._services.values())

    @cached_property
    def _client(self) -> httpx.Client:
        body = {"username": self.user, "password": self.password}
        answer = httpx.post(f"{self.url}/auth/token", json=body, timeout=30).raise_for_status()
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        return httpx.Client(base_url=self.api_url, headers=headers, timeout=60)


def _text(event: Mapping[str, Any]) -> str:
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in event.get("error_detail") or ()]
    return "\n".join([event["event"], *errors])


def _clean_environment() -> dict[str, str]:
    """Return our environment without the settings of another Airflow."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
