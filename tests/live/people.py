"""People with roles, at the REST API of a real Airflow with its simple auth manager."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun

ROLES = ("viewer", "user", "op")
"""The roles below ``admin``; of each there is one person, of the same name."""
MAY_SEE = {"viewer": 200, "user": 200, "op": 200}
MAY_TRIGGER = {"viewer": 403, "user": 200, "op": 200}
MAY_READ = {"viewer": 403, "user": 403, "op": 200}
"""Connections and Variables; who may read them may change them."""
USERS = ",".join(["admin:admin", *(f"{role}:{role}" for role in ROLES)])
_PAGE = 100


@dataclass(frozen=True)
class Person:
    """Somebody with a role.

    :param role: and the name.
    """

    airflow: AirflowStack
    role: str

    def ask(self, method: str, path: str, body: object = None, **query: str | int) -> httpx.Response:
        """Call the API and return the answer, whatever it is."""
        url, headers = f"{self.airflow.api_url}/{path}", {"Authorization": f"Bearer {self._token}"}
        return httpx.request(method, url, json=body, params=query, headers=headers, timeout=60)

    def fill_in(self, dag_id: str, fields: Mapping[str, object]) -> httpx.Response:
        """Press *Trigger* with a form that is filled in."""
        return self.ask("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None, "conf": dict(fields)})

    def trigger(self, dag_id: str, **fields: object) -> DagRun:
        """Start a run, which must be allowed."""
        self.airflow.unpause(dag_id)
        answer = self.fill_in(dag_id, fields).raise_for_status()
        return DagRun(dag_id, answer.json()["dag_run_id"])

    def everything(self, path: str, key: str) -> list[dict[str, Any]]:
        """Return all entries of a list, page by page."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.ask("GET", path, limit=_PAGE, offset=len(found)).raise_for_status().json()
            found += answer[key]
            if not answer[key] or len(found) >= answer["total_entries"]:
                return found

    @cached_property
    def _token(self) -> str:
        passwords = json.loads(Path(self.airflow.home, "passwords.json").read_text())
        body = {"username": self.role, "password": passwords[self.role]}
        answer = httpx.post(f"{self.airflow.url}/auth/token", json=body, timeout=30).raise_for_status()
        return str(answer.json()["access_token"])
