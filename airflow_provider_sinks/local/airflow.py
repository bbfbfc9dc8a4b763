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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import httpx

from airflow_provider_sinks.local import forked_airflow
from airflow_provider_sinks.local.airflow_rest_api import AirflowRestApi
from airflow_provider_sinks.local.metadata_database import MetadataDatabase
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError, Service
from airflow_provider_sinks.local.progress import step

_READY_SECONDS = 300.0
_FIRST_ANSWER_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25
_AUTH_MANAGER = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"


class AirflowStack(AirflowRestApi):
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
        super().__init__(free_port(), "admin", secrets.token_urlsafe(12))
        self.home = home
        self._program = [python, "-m", "airflow"]
        self.dags_folder = dags_folder
        self._passwords = home / "passwords.json"
        self.metadata = MetadataDatabase(home / "airflow.db", postgres)
        self.environment = {**_clean_environment(), **self._settings(), **env}
        commands = {"": [python, "-m", forked_airflow.__name__]} if forked else self._commands()
        self.services = {
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
                for service in stack.services.values():
                    service.start()
                first = next(iter(stack.services.values()))
                first.wait_until(stack.healthy, _READY_SECONDS, _POLL_SECONDS)
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

    def command(self, *arguments: str, code: int = 0) -> str:
        """Run an ``airflow`` command beside this Airflow and return what it prints.

        :param code: with which it must end.
        """
        done = subprocess.run(
            [*self._program, *arguments],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            output = f"{done.stdout}{done.stderr}".splitlines()
            raise LocalServiceError(
                f"airflow {' '.join(arguments)} ended with {done.returncode}", "\n".join(output[-30:])
            )
        return done.stdout

    def healthy(self) -> bool:
        """Say whether every part reports that it is healthy.

        :raises LocalServiceError: when one of the programs has ended.
        """
        for service in self.services.values():
            if not service.running:
                raise service.failure(f"{service.name} ended")
        try:
            # The first request to the tasks' own API builds it, and nothing else is answered for seconds.
            httpx.get(f"{self.url}/execution/health", timeout=_FIRST_ANSWER_SECONDS)
            parts = httpx.get(f"{self.api_url}/monitor/health", timeout=5).raise_for_status().json()
        except httpx.HTTPError:
            return False
        return all(part["status"] == "healthy" for part in parts.values())

    def last_words(self) -> str:
        """Return what each program wrote last."""
        return "\n".join(str(service.failure(service.name)) for service in self.services.values())

    def stop(self) -> None:
        """End the four programs, and the tasks that run."""
        self.close()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda service: service.stop(_GRACE_SECONDS), self.services.values()))

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
            "CORE__DAGBAG_IMPORT_TIMEOUT": "300",  # a busy machine has half a minute for nothing
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


def _clean_environment() -> dict[str, str]:
    """Return our environment without the settings of another Airflow."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
